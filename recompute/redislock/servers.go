package redislock

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// breakers are those of one server.
type breakers struct {
	link   *breaker // for every step: does the server answer?
	writes *breaker // for steps that write: does it take writes?
}

// servers keeps the breakers of each server that steps go to, so that those of a cluster that are well are asked while
// one is not.
type servers struct {
	rdb     redis.UniversalClient
	tell    func(state string, err error)
	any     breakers    // of the only server, or of one that is not known
	located atomic.Bool // a cluster's layout is known, so that asking the client for it does not wait
	each    sync.Map    // address → *breakers
}

func newServers(rdb redis.UniversalClient, tell func(state string, err error)) *servers {
	s := &servers{rdb: rdb, tell: tell}
	s.any = s.breakers()
	return s
}

func (s *servers) breakers() breakers {
	return breakers{newBreaker("link", s.tell), newBreaker("writes", s.tell)}
}

// of returns the breakers of the server that has key; "" is none in particular.
func (s *servers) of(key string) *breakers {
	addr := s.addr(key)
	if addr == "" {
		return &s.any
	}
	if b, ok := s.each.Load(addr); ok {
		return b.(*breakers)
	}
	fresh := s.breakers()
	b, _ := s.each.LoadOrStore(addr, &fresh)
	return b.(*breakers)
}

// addr returns the address of the server that has key, "" if there is only one or it is not known yet.
func (s *servers) addr(key string) string {
	var client *redis.Client
	var err error
	switch c := s.rdb.(type) {
	case *redis.ClusterClient:
		if key == "" || !s.located.Load() {
			return ""
		}
		client, err = c.MasterForKey(context.Background(), key)
	case *redis.Ring:
		client, err = c.GetShardClientForKey(key)
	}
	if client == nil || err != nil {
		return ""
	}
	return client.Options().Addr
}
