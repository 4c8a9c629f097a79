package locks_test

import (
	"context"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// openBsm asks each 50 ms: by itself it asks once. It has no fence and extends nothing.
func openBsm(_ *testing.B, rdb *redis.Client) func(context.Context, string, func()) error {
	c := redislock.New(rdb)
	return func(ctx context.Context, key string, work func()) error {
		lock, err := c.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(50 * time.Millisecond)})
		if err != nil {
			return err
		}
		work()
		return lock.Release(ctx)
	}
}
