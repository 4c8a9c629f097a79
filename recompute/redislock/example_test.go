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

// One replica of many runs a job each hour. The others skip it.
func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	locker, err := redislock.New(rdb, redislock.Options{Prefix: "billing"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	jobs, err := recompute.NewGuard(locker, recompute.GuardOptions{MaxHold: 30 * time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}

	for range time.Tick(time.Hour) {
		ran, err := jobs.Try(context.Background(), "monthly invoices", func(ctx context.Context, h *recompute.Held) error {
			fence, _ := h.Fence()
			for batch := range 100 {
				if ctx.Err() != nil {
					return fmt.Errorf("stopped before batch %d: %w", batch, context.Cause(ctx))
				}
				// … write invoices WHERE fence < $fence, or guarded by a unique constraint …
				_ = fence
			}
			return nil
		})
		switch {
		case errors.Is(err, recompute.ErrNotRun):
			fmt.Println("Redis could not tell:", err)
		case err != nil:
			fmt.Println("the work failed:", err)
		case !ran:
			fmt.Println("another replica does it")
		}
	}
}

// Three servers that know nothing of each other: one of them can fail.
func ExampleNewQuorum() {
	var servers []redis.UniversalClient
	for _, addr := range []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"} {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		defer rdb.Close()
		servers = append(servers, rdb)
	}
	locker, err := redislock.NewQuorum(servers, redislock.QuorumOptions{Prefix: "billing"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locker.Close()
	tokens, err := recompute.NewGuard(locker, recompute.GuardOptions{TTL: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}

	err = tokens.Do(context.Background(), "renew token", func(ctx context.Context, h *recompute.Held) error {
		fence, _ := h.Fence()
		// … renew it, and write it WHERE fence < $fence …
		_ = fence
		return ctx.Err()
	})
	switch {
	case errors.Is(err, redislock.ErrQuorum):
		fmt.Println("too few of the servers answer:", err)
	case err != nil:
		fmt.Println(err)
	}
}
