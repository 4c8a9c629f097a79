package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

func openLocker(b *testing.B, rdb *redis.Client, o redislock.Options) *redislock.Locker {
	b.Helper()
	o.Budget = 5 * time.Second
	l, err := redislock.New(rdb, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	})
	return l
}

// openGuard is the one call: with fence, extensions while the work runs, and waking.
func openGuard(b *testing.B, rdb *redis.Client) func(context.Context, string, func()) error {
	b.Helper()
	return guarded(b, openLocker(b, rdb, redislock.Options{}))
}

func guarded(b *testing.B, l recompute.Locker) func(context.Context, string, func()) error {
	b.Helper()
	g, err := recompute.NewGuard(l, recompute.GuardOptions{TTL: ttl, Wait: patience})
	if err != nil {
		b.Fatal(err)
	}
	return func(ctx context.Context, key string, work func()) error {
		return g.Do(ctx, key, func(context.Context, *recompute.Held) error {
			work()
			return nil
		})
	}
}

// openLease is acquire and release, with a fence, and nothing else. It does not wait.
func openLease(b *testing.B, rdb *redis.Client) func(context.Context, string, func()) error {
	b.Helper()
	return leased(openLocker(b, rdb, redislock.Options{}))
}

// openUnfenced is the same without a fence, as the others have none.
func openUnfenced(b *testing.B, rdb *redis.Client) func(context.Context, string, func()) error {
	b.Helper()
	return leased(openLocker(b, rdb, redislock.Options{Unfenced: true}))
}

func leased(l recompute.Locker) func(context.Context, string, func()) error {
	return func(ctx context.Context, key string, work func()) error {
		lease, err := l.Acquire(ctx, key, ttl)
		if err != nil {
			return err
		}
		work()
		return lease.Release(ctx)
	}
}
