package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	keysInFlight  = 64 // keys asked for at a time
	callersPerKey = 4  // at most, on each replica
)

func coldKeys() Scenario {
	return Scenario{
		Name:  "cold-keys",
		About: "many missing keys, 64 at a time, each asked for by all replicas at once",
		Plan: func(p Params) Plan {
			return Plan{Terms: Terms{Fresh: outlast}, Compute: min(p.Compute/10, 50*time.Millisecond)}
		},
		Run: func(ctx context.Context, t *Trial) error {
			walkKeys(ctx, t)
			computations, _ := t.origin.counts()
			perKey := float64(computations) / float64(t.Keys)
			t.note("computations_per_key", perKey, fmt.Sprintf("%.2f computations per key", perKey))
			return nil
		},
	}
}

// walkKeys takes the keys in a seeded order, so many at a time.
func walkKeys(ctx context.Context, t *Trial) {
	keys := make(chan int)
	var walkers sync.WaitGroup
	for range keysInFlight {
		walkers.Go(func() {
			for k := range keys {
				key := fmt.Sprintf("key-%d", k)
				t.fleet.herd(min(t.Callers, callersPerKey), func(r Replica) { t.call(ctx, r, key) })
			}
		})
	}
	for _, k := range t.rand.Perm(t.Keys) {
		keys <- k
	}
	close(keys)
	walkers.Wait()
}
