package locks_test

import (
	"context"
	"testing"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// openRedsync has redsync's own pauses, 50 to 250 ms, as often as it takes. It has no fence and extends nothing.
func openRedsync(_ *testing.B, rdb *redis.Client) func(context.Context, string, func()) error {
	return mutexed(redsync.New(goredis.NewPool(rdb)))
}

func mutexed(rs *redsync.Redsync) func(context.Context, string, func()) error {
	return func(ctx context.Context, key string, work func()) error {
		m := rs.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(100_000))
		if err := m.LockContext(ctx); err != nil {
			return err
		}
		work()
		_, err := m.UnlockContext(ctx)
		return err
	}
}
