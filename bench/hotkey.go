package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	hotLifetimes = 8                     // the trial lasts so many lifetimes
	hotCallers   = 10                    // at most, on each replica
	hotPause     = 20 * time.Millisecond // mean pause of a caller between two calls
)

func hotKey() Scenario {
	return Scenario{
		Name:  "hot-key",
		About: "steady callers on one key that keeps running out",
		Plan: func(p Params) Plan {
			return Plan{
				Terms:   Terms{Fresh: p.Compute, WhileRevalidate: 10 * p.Compute},
				Compute: p.Compute / 4,
			}
		},
		Run: runHotKey,
	}
}

func runHotKey(ctx context.Context, t *Trial) error {
	lasts := hotLifetimes * t.plan.Terms.Fresh
	stop := now() + lasts
	var callers sync.WaitGroup
	for _, r := range t.fleet.Replicas {
		for range min(t.Callers, hotCallers) {
			pauses := rand.New(rand.NewPCG(t.rand.Uint64(), t.rand.Uint64()))
			callers.Go(func() {
				for now() < stop && ctx.Err() == nil {
					t.call(ctx, r, "hot")
					// Pauses of 0 to twice the mean keep callers from marching in step.
					_ = pause(ctx, time.Duration(pauses.Int64N(int64(2*hotPause))))
				}
			})
		}
	}
	callers.Wait()
	noteHotKey(t, lasts)
	return nil
}

// noteHotKey says how often the key was computed in its lifetimes, and how old the oldest answer was.
func noteHotKey(t *Trial, lasts time.Duration) {
	var oldest time.Duration
	for _, c := range t.calls.list() {
		oldest = max(oldest, c.Age)
	}
	computations, _ := t.origin.counts()
	perLifetime := float64(computations) / (float64(lasts) / float64(t.plan.Terms.Fresh))
	t.note("computations_per_lifetime", perLifetime, fmt.Sprintf("%.2f computations per lifetime", perLifetime))
	t.note("oldest_answer_ms", millis(oldest), fmt.Sprintf("oldest answer %s ms", figure(oldest)))
}
