package outage_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/stale"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	replicas = 4
	callers  = 8                     // on each
	rest     = 20 * time.Millisecond // of a caller between two calls

	fresh   = time.Second
	takes   = 100 * time.Millisecond // a computation
	lasts   = 3 * time.Second        // an outage: in it a process can't compute a fourth time what it keeps
	patient = 10 * time.Second       // for what comes
)

// ctx is for what no test's end cuts short.
var ctx = context.Background()

// scene is a fleet under steady load, and its way to Redis.
type scene struct {
	t       *testing.T
	server  *redisserver.Server
	proxy   *faultproxy.Proxy
	admin   *redis.Client // goes past the proxy
	members []*member
	fresh   time.Duration
	budget  time.Duration // of a step

	callers sync.WaitGroup
	stop    chan struct{}
	calls   atomic.Int64
	slowest atomic.Int64
	waited  atomic.Int64 // for a computation, though there was a value, before it was over
	over    atomic.Bool  // the outage is
}

// member is a replica and the source that it computes from.
type member struct {
	*cache.Cache[string]
	mu   sync.Mutex
	runs map[string]int // of each key
	hear atomic.Bool
}

// stage starts a fleet. All of it is at the defaults but for these; a budget of 0 is one.
func stage(t *testing.T, fresh, budget time.Duration) *scene {
	s := &scene{t: t, server: redistest.Start(t), fresh: fresh, budget: budget, stop: make(chan struct{})}
	s.proxy = faultproxy.Start(t, s.server.Addr)
	s.admin = redistest.Client(t, s.server)
	for range replicas {
		s.members = append(s.members, s.join())
	}
	return s
}

// join starts a replica.
func (s *scene) join() *member {
	m := &member{runs: make(map[string]int)}
	rdb := redis.NewClient(&redis.Options{Addr: s.proxy.Addr})
	s.t.Cleanup(func() { assert.NoError(s.t, rdb.Close()) })
	c, err := cache.New(redisstore.New(rdb, redisstore.Options{Prefix: "t", Budget: s.budget}), cache.Options[string]{
		Policy: stale.Policy{Fresh: s.fresh, WhileRevalidate: time.Minute, IfError: time.Hour},
		Trace:  cache.Trace{Push: func(on bool, _ error) { m.hear.Store(on) }},
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { assert.NoError(s.t, c.Close()) })
	m.Cache = c
	require.Eventually(s.t, m.hear.Load, patient, time.Millisecond)
	return m
}

// source computes the value of key, which is its name.
func (m *member) source(key string) cache.Compute[string] {
	return func(context.Context) (string, error) {
		m.mu.Lock()
		m.runs[key]++
		m.mu.Unlock()
		time.Sleep(takes)
		return key, nil
	}
}

// computed returns how often key was computed, by replica.
func (s *scene) computed(key string) (runs []int) {
	for _, m := range s.members {
		m.mu.Lock()
		runs = append(runs, m.runs[key])
		m.mu.Unlock()
	}
	return runs
}

// call lets half of the callers ask for key, until the scene ends. If there is a value at hand, nobody waits for a computation.
func (s *scene) call(key string, atHand bool) {
	for _, m := range s.members {
		for range callers / 2 {
			s.callers.Go(func() {
				for s.ask(m, key, atHand) {
					select {
					case <-time.After(rest):
					case <-s.stop:
						return
					}
				}
			})
		}
	}
}

// ask makes one call and says whether it had what it should.
func (s *scene) ask(m *member, key string, atHand bool) bool {
	began := time.Now()
	got, err := m.Lookup(ctx, key, m.source(key))
	took := time.Since(began)
	s.calls.Add(1)
	for most := s.slowest.Load(); int64(took) > most && !s.slowest.CompareAndSwap(most, int64(took)); most = s.slowest.Load() {
	}
	if atHand && !s.over.Load() && (got.Outcome == cache.Computed || got.Outcome == cache.Collapsed) {
		s.waited.Add(1)
	}
	return assert.NoError(s.t, err) && assert.Equal(s.t, key, got.Value)
}

// end waits for the callers, who stop.
func (s *scene) end() {
	close(s.stop)
	s.callers.Wait()
}

// shared waits until the replicas share again: what one computes, the others find. It returns how long that took.
func (s *scene) shared() time.Duration {
	began := time.Now()
	for n := 0; ; n++ {
		runs := 0
		for _, m := range s.members {
			_, err := m.GetOrCompute(ctx, fmt.Sprint("shared", n), func(context.Context) (string, error) { runs++; return "v", nil })
			require.NoError(s.t, err)
		}
		took := time.Since(began)
		if runs == 1 {
			return took
		}
		require.Less(s.t, took, patient, "they don't share")
		time.Sleep(rest)
	}
}
