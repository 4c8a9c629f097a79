package locks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	rsredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// quorumArm is an arm on several independent servers, of which a majority decides. bsm/redislock has none.
type quorumArm struct {
	name string
	open func(b *testing.B, rdbs []*redis.Client) func(ctx context.Context, key string, work func()) error
}

var quorumArms = []quorumArm{
	{"bellwether-guard", openQuorumGuard},
	{"bellwether-lease", openQuorumLease},
	{"redsync", openQuorumRedsync},
}

func openQuorum(b *testing.B, rdbs []*redis.Client) *redislock.Quorum {
	b.Helper()
	var clients []redis.UniversalClient
	for _, rdb := range rdbs {
		clients = append(clients, rdb)
	}
	q, err := redislock.NewQuorum(clients, redislock.QuorumOptions{Budget: 5 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := q.Close(); err != nil {
			b.Error(err)
		}
	})
	return q
}

func openQuorumGuard(b *testing.B, rdbs []*redis.Client) func(context.Context, string, func()) error {
	b.Helper()
	return guarded(b, openQuorum(b, rdbs))
}

func openQuorumLease(b *testing.B, rdbs []*redis.Client) func(context.Context, string, func()) error {
	b.Helper()
	return leased(openQuorum(b, rdbs))
}

func openQuorumRedsync(_ *testing.B, rdbs []*redis.Client) func(context.Context, string, func()) error {
	var pools []rsredis.Pool
	for _, rdb := range rdbs {
		pools = append(pools, goredis.NewPool(rdb))
	}
	return mutexed(redsync.New(pools...))
}

func startAll(b *testing.B, n int) (servers []*redisserver.Server) {
	b.Helper()
	for range n {
		servers = append(servers, redistest.Start(b))
	}
	return servers
}

func (a quorumArm) process(b *testing.B, servers []*redisserver.Server) func(context.Context, string, func()) error {
	b.Helper()
	var rdbs []*redis.Client
	for _, s := range servers {
		rdbs = append(rdbs, one(b, s))
	}
	do := a.open(b, rdbs)
	for range 5 { // so that also those that are not waited for know the scripts
		if err := do(b.Context(), "warm", func() {}); err != nil {
			b.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return do
}

func BenchmarkQuorumUncontended(b *testing.B) {
	for _, n := range []int{3, 5} {
		servers := startAll(b, n)
		for _, arm := range quorumArms {
			b.Run(fmt.Sprintf("%s/%d", arm.name, n), func(b *testing.B) {
				do := arm.process(b, servers)
				b.ReportAllocs()
				for b.Loop() {
					if err := do(b.Context(), "key", func() {}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// As BenchmarkHandOff; commands are those to all servers.
func BenchmarkQuorumHandOff(b *testing.B) {
	for _, n := range []int{3, 5} {
		for _, arm := range quorumArms {
			if arm.name == "bellwether-lease" {
				continue // it does not wait
			}
			b.Run(fmt.Sprintf("%s/%d", arm.name, n), func(b *testing.B) {
				servers := startAll(b, n)
				ways := make([]func(context.Context, string, func()) error, processes)
				for i := range ways {
					ways[i] = arm.process(b, servers)
				}
				report(b, servers, ways)
			})
		}
	}
}
