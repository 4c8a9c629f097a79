package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Crowd is callers on all replicas, each of whom calls, rests and calls again.
type Crowd struct {
	rest    time.Duration // on average, between two calls
	keys    int           // each call is for one of so many, by chance
	name    string        // of the keys
	patient time.Duration // longest a caller waits before he tries again; 0: for ever
	tries   int           // of a call whose patience ended

	gone sync.WaitGroup
	stop chan struct{}
}

// crowd lets so many callers on each replica call, until end.
func (t *Trial) crowd(ctx context.Context, callers int, c *Crowd) *Crowd {
	c.stop = make(chan struct{})
	for _, r := range t.fleet.Replicas {
		for range callers {
			chance := rand.New(rand.NewPCG(t.rand.Uint64(), t.rand.Uint64()))
			c.gone.Go(func() {
				// Pauses of 0 to twice the mean keep callers from marching in step.
				for pauseUntil(ctx, c.stop, time.Duration(chance.Int64N(int64(2*c.rest)))) {
					t.try(ctx, r, c, chance.IntN(c.keys))
				}
			})
		}
	}
	return c
}

// try makes one call, and again if it took too long.
func (t *Trial) try(ctx context.Context, r Replica, c *Crowd, key int) {
	name := fmt.Sprintf("%s-%d", c.name, key)
	if c.patient == 0 {
		t.call(ctx, r, name)
		return
	}
	for range c.tries {
		hurried, cancel := context.WithTimeout(ctx, c.patient)
		call := t.calls.make(hurried, r, name, t.origin)
		cancel()
		if call.Err == nil {
			return
		}
	}
}

// end lets the callers go home, and waits for their last calls.
func (c *Crowd) end() {
	close(c.stop)
	c.gone.Wait()
}

// pauseUntil says whether it was over before the end of ctx and of the crowd.
func pauseUntil(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
	case <-ctx.Done():
	}
	return false
}
