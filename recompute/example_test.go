package recompute_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

func ExampleGroup_Do() {
	tasks := recompute.NewTasks()
	defer tasks.Close(5 * time.Second)
	reports := recompute.NewGroup[string](tasks, 30*time.Second)

	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			report, err := reports.Do(context.Background(), "2026-11", func(ctx context.Context, seal func()) (string, error) {
				fmt.Println("computing once")
				time.Sleep(200 * time.Millisecond) // a slow query
				return "a report", nil
			})
			if err != nil || report != "a report" {
				fmt.Println(report, err)
			}
		})
	}
	callers.Wait()
	fmt.Println("100 callers have it")
	// Output:
	// computing once
	// 100 callers have it
}

func ExampleLocal() {
	var locker recompute.Local
	ctx := context.Background()

	lease, err := locker.Acquire(ctx, "report", 2*time.Second)
	fmt.Println("first:", err)

	_, err = locker.Acquire(ctx, "report", 2*time.Second)
	fmt.Println("second is too late:", errors.Is(err, recompute.ErrHeld))

	fmt.Println("release:", lease.Release(ctx))
	fmt.Println("again:", lease.Release(ctx))
	// Output:
	// first: <nil>
	// second is too late: true
	// release: <nil>
	// again: recompute: the lease is lost
}

// A job keeps its lease alive for as long as it takes, and stops should the lease be lost all the same.
func ExampleHold() {
	const ttl = 2 * time.Second
	var locker recompute.Local
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // bounds the extensions
	defer cancel()

	since := time.Now()
	lease, err := locker.Acquire(ctx, "nightly job", ttl)
	if errors.Is(err, recompute.ErrHeld) {
		return // another replica does it
	}
	work, stop := recompute.Hold(ctx, nil, lease, since, ttl, recompute.Trace{})
	defer func() {
		stop()
		fmt.Println("released:", lease.Release(ctx))
	}()

	select {
	case <-work.Done():
		fmt.Println("stopped:", context.Cause(work))
	case <-time.After(100 * time.Millisecond): // however long it takes
		fmt.Println("done")
	}
	// Output:
	// done
	// released: <nil>
}

func ExampleBackoff_Pauses() {
	b := recompute.Backoff{Min: 100 * time.Millisecond, Max: time.Second}
	for pause := range b.Pauses() {
		fmt.Println(pause) // try; on failure wait for that long, or until the context ends
		if pause == b.Max {
			break
		}
	}
	// Output:
	// 100ms
	// 200ms
	// 400ms
	// 800ms
	// 1s
}
