package recompute_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// A periodic job: every replica has the timer, one does the work, the others skip it. What it does is recorded, so that a run that was
// cut short is taken up where it ended.
func ExampleGuard_Try() {
	locker := new(recompute.Local) // in a fleet: redislock.New
	jobs, err := recompute.NewGuard(locker, recompute.GuardOptions{TTL: 30 * time.Second, MaxHold: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	next := 0 // in a fleet: in the database
	invoices := func(ctx context.Context, h *recompute.Held) error {
		for ; next < 3; next++ {
			if ctx.Err() != nil {
				return context.Cause(ctx) // the lease is lost, or somebody wants us to stop
			}
			fmt.Println("batch", next)
		}
		return nil
	}

	_, _ = jobs.Try(context.Background(), "invoices of 2026-11", func(ctx context.Context, h *recompute.Held) error {
		ran, err := jobs.Try(ctx, "invoices of 2026-11", invoices) // another replica's timer
		fmt.Println("while another does it:", ran, err)
		return nil
	})
	ran, err := jobs.Try(context.Background(), "invoices of 2026-11", invoices)
	fmt.Println("the next time:", ran, err)
	// Output:
	// while another does it: false <nil>
	// batch 0
	// batch 1
	// batch 2
	// the next time: true <nil>
}

// The renewal of a credential: all replicas notice that it ends soon and want to renew it. One does, the others wait for it, look
// again under the lease, and find that nothing is left to do.
func ExampleGuard_Do() {
	renewals, err := recompute.NewGuard(new(recompute.Local), recompute.GuardOptions{Wait: 5 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	var stored struct { // in a fleet: in the database
		token string
		fence int64
	}
	renew := func(ctx context.Context) error {
		return renewals.Do(ctx, "token of the payment provider", func(ctx context.Context, h *recompute.Held) error {
			if stored.token != "" {
				return nil // another has done it while we waited
			}
			fmt.Println("renewing once")
			// UPDATE credentials SET token = $1, fence = $2 WHERE fence < $2
			if fence, ok := h.Fence(); ok && stored.fence < fence {
				stored.token, stored.fence = "a new token", fence
			}
			return nil
		})
	}

	var replicas sync.WaitGroup
	for range 10 {
		replicas.Go(func() {
			if err := renew(context.Background()); err != nil {
				fmt.Println(err)
			}
		})
	}
	replicas.Wait()
	fmt.Println("all have", stored.token)
	// Output:
	// renewing once
	// all have a new token
}
