package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// record is a row of a source whose version only grows. deleted is the highest version as of which a Delete has
// returned: whoever asks after that must not get less.
type record struct{ version, deleted atomic.Int64 }

// Guarantee 12, as a history: readers, and writers that change the source and then delete, on three replicas, while
// things are lost. No reader gets what was deleted before it asked.
func TestNobodyGetsWhatWasDeletedBeforeTheyAsked(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(rdb *redis.Client, p *faultproxy.Proxy, key string){
		"undisturbed":             func(*redis.Client, *faultproxy.Proxy, string) {},
		"nothing is announced":    func(*redis.Client, *faultproxy.Proxy, string) {},
		"subscriptions break":     func(rdb *redis.Client, _ *faultproxy.Proxy, _ string) { rdb.ClientKillByFilter(ctx, "TYPE", "pubsub") },
		"connections break":       func(rdb *redis.Client, _ *faultproxy.Proxy, _ string) { rdb.ClientKillByFilter(ctx, "TYPE", "normal") },
		"scripts are forgotten":   func(rdb *redis.Client, _ *faultproxy.Proxy, _ string) { rdb.ScriptFlush(ctx) },
		"fences are evicted":      func(rdb *redis.Client, _ *faultproxy.Proxy, key string) { rdb.Del(ctx, redisKey("f", key)) },
		"leases are evicted":      func(rdb *redis.Client, _ *faultproxy.Proxy, key string) { rdb.Del(ctx, redisKey("l", key)) },
		"everything is forgotten": func(rdb *redis.Client, _ *faultproxy.Proxy, _ string) { rdb.FlushAll(ctx) },
		"replies are lost": func(_ *redis.Client, p *faultproxy.Proxy, _ string) {
			p.On(faultproxy.Rule{Marker: prefix + ":", Nth: 1 + rand.N(10), Do: faultproxy.DropReply})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			proxy := faultproxy.Start(t, s.Addr)
			admin := redistest.Client(t, s)
			var replicas []*replica[int64]
			for range 3 {
				replicas = append(replicas, enlist(t, proxy.Addr, func(s *setup[int64]) {
					s.cache.Lease = 200 * time.Millisecond
					if name == "nothing is announced" {
						require.NoError(t, admin.Do(ctx, "ACL", "SETUSER", "alone", "on", ">secret", "~t:*", "+@all", "-@pubsub").Err())
						s.redis.Username, s.redis.Password = "alone", "secret"
					}
				}))
			}
			records := make([]record, 3)
			until := time.Now().Add(2 * time.Second)
			var wg sync.WaitGroup
			var reads, runs, deletions atomic.Int64
			for i := range records {
				key, row := fmt.Sprint("k", i), &records[i]
				compute := func(context.Context) (int64, error) {
					runs.Add(1)
					v := row.version.Load()
					time.Sleep(rand.N(20 * time.Millisecond))
					return v, nil
				}
				for _, r := range replicas {
					for range 4 {
						wg.Go(func() {
							for time.Now().Before(until) {
								floor := row.deleted.Load()
								got, err := r.Lookup(t.Context(), key, compute)
								reads.Add(1)
								if !assert.NoError(t, err) {
									return
								}
								if got.Value < floor {
									t.Errorf("read version %d (%v) after %d had been deleted", got.Value, got.Outcome, floor)
								}
								time.Sleep(rand.N(2 * time.Millisecond))
							}
						})
					}
					wg.Go(func() {
						for time.Now().Before(until) {
							time.Sleep(rand.N(60 * time.Millisecond))
							v := row.version.Add(1)
							if err := r.Delete(t.Context(), key); err != nil {
								continue
							}
							deletions.Add(1)
							for old := row.deleted.Load(); old < v && !row.deleted.CompareAndSwap(old, v); old = row.deleted.Load() {
							}
						}
					})
				}
			}
			wg.Go(func() {
				for time.Now().Before(until) {
					pause := 50 * time.Millisecond
					if name == "connections break" {
						pause *= 8 // or the breaker stays open and nothing is deleted
					}
					time.Sleep(rand.N(pause))
					disturb(admin, proxy, fmt.Sprint("k", rand.N(len(records))))
				}
			})
			wg.Wait()
			t.Logf("%s: %d reads, %d computations, %d deletions", name, reads.Load(), runs.Load(), deletions.Load())
			require.Positive(t, deletions.Load())
		})
	}
}
