package main

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/stale"
)

func bellwetherArm() Arm {
	return Arm{
		Name:  "bellwether",
		About: "one caller of the whole fleet computes, everyone else gets its result",
		New: func(rdb *redis.Client, t Terms) (Replica, error) {
			return newBellwether(rdb, t)
		},
		Site: newBehind,
	}
}

type bellwether struct {
	cache *cache.Cache[[]byte]
	steps
}

func newBellwether(rdb *redis.Client, t Terms) (b *bellwether, err error) {
	b = &bellwether{}
	b.cache, err = openCache[[]byte](rdb, t, &b.steps)
	return b, err
}

func openCache[V any](rdb *redis.Client, t Terms, s *steps) (*cache.Cache[V], error) {
	return cache.New(redisstore.New(rdb, redisstore.Options{Prefix: t.Prefix}), cache.Options[V]{
		Policy: stale.Policy{Fresh: t.Fresh, WhileRevalidate: t.WhileRevalidate, IfError: t.IfError, Cooldown: t.Cooldown},
		Lease:  t.Lease,
		Trace:  s.trace(),
	})
}

func (b *bellwether) Get(ctx context.Context, key string, compute Compute) ([]byte, error) {
	return b.cache.GetOrCompute(ctx, key, compute)
}

func (b *bellwether) Delete(ctx context.Context, key string) error { return b.cache.Delete(ctx, key) }

func (b *bellwether) Close() error { return b.cache.Close() }

// steps counts those that Redis refused or did not do within the library's budget: its callers don't notice, they
// get a value all the same, but with such a step the promise of one computation is off.
type steps struct{ failed atomic.Int64 }

func (s *steps) trace() (t cache.Trace) {
	t.Lease.Failed = func(error) { s.failed.Add(1) }
	t.Lease.Lost = func() { s.failed.Add(1) }
	t.StoreFailed = func(string, error) { s.failed.Add(1) }
	return t
}

// FailedSteps is their number so far.
func (s *steps) FailedSteps() int { return int(s.failed.Load()) }
