package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// One replica of many runs a job. The others skip it.
func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	locker := redislock.New(rdb, redislock.Options{Prefix: "billing"})

	const ttl = 10 * time.Second // how long a crash may keep others from taking over
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	since := time.Now()
	lease, err := locker.Acquire(ctx, "monthly invoices", ttl)
	switch {
	case errors.Is(err, recompute.ErrHeld):
		return
	case err != nil:
		fmt.Println("Redis could not tell:", err)
		return
	}
	work, stop := recompute.Hold(ctx, nil, lease, since, ttl, recompute.Trace{})
	defer func() {
		stop()
		_ = lease.Release(ctx) // if this fails, the lease ends by itself
	}()

	for batch := range 100 {
		if work.Err() != nil {
			fmt.Println("stopped before batch", batch, context.Cause(work))
			return
		}
		// … write invoices, guarded by a unique constraint …
	}
}
