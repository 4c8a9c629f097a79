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
	}
}

type bellwether struct {
	cache  *cache.Cache[[]byte]
	failed atomic.Int64
}

func newBellwether(rdb *redis.Client, t Terms) (*bellwether, error) {
	b := &bellwether{}
	var trace cache.Trace
	trace.Lease.Failed = func(error) { b.failed.Add(1) }
	trace.Lease.Lost = func() { b.failed.Add(1) }
	trace.StoreFailed = func(string, error) { b.failed.Add(1) }
	var err error
	b.cache, err = cache.New(redisstore.New(rdb, redisstore.Options{Prefix: t.Prefix}), cache.Options[[]byte]{
		Policy: stale.Policy{Fresh: t.Fresh, WhileRevalidate: t.WhileRevalidate, IfError: t.IfError, Cooldown: t.Cooldown},
		Lease:  t.Lease,
		Trace:  trace,
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (b *bellwether) Get(ctx context.Context, key string, compute Compute) ([]byte, error) {
	return b.cache.GetOrCompute(ctx, key, compute)
}

func (b *bellwether) Delete(ctx context.Context, key string) error { return b.cache.Delete(ctx, key) }

func (b *bellwether) Close() error { return b.cache.Close() }

// FailedSteps counts steps that Redis refused or did not do within the library's budget: its callers don't notice, they
// get a value all the same, but with such a step the promise of one computation is off.
func (b *bellwether) FailedSteps() int { return int(b.failed.Load()) }
