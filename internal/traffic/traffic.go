// Package traffic is clients of a store or of a cache that keep a history of what they did and were told.
//
// What they are not told they do not claim: a step that failed is no observation, and a write or deletion that failed
// may have been done. It works in testing/synctest bubbles.
package traffic

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Options says how much traffic there is. The zero value works.
type Options struct {
	Seed    uint64        // of what the clients choose; when they do it depends on who runs when
	Names   int           // default 3
	Clients int           // of each replica and name; default 2
	For     time.Duration // default 1 s
	Pause   time.Duration // longest between two things that a client does; default 20 ms
	Takes   time.Duration // longest between the beginning and the end of a computation; default 20 ms

	// Resent says that a step may be done twice, since the client sends it again when its reply is lost. It may
	// then be refused although it was done.
	Resent bool
	// Untried says whether an error means that nothing was sent. Default: none does.
	Untried func(error) bool
	// NoStale says that the caches have no window for stale values: one that is given is the last known one, in
	// place of an answer of the store.
	NoStale bool
	// Failed is told of the errors of Lookup. Default: they are ignored.
	Failed func(error)
}

func (o Options) complete() Options {
	o.Names = cmp.Or(o.Names, 3)
	o.Clients = cmp.Or(o.Clients, 2)
	o.For = cmp.Or(o.For, time.Second)
	o.Pause = cmp.Or(o.Pause, 20*time.Millisecond)
	o.Takes = cmp.Or(o.Takes, 20*time.Millisecond)
	if o.Untried == nil {
		o.Untried = func(error) bool { return false }
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	return o
}

// run has clients of each replica and name do things until the time is over, and waits for them.
func (o Options) run(replicas int, do func(replica int, name string, dice *rand.Rand)) {
	until := time.Now().Add(o.For)
	var all sync.WaitGroup
	for i := range o.Clients * o.Names * replicas {
		dice := rand.New(rand.NewPCG(o.Seed, uint64(i)))
		all.Go(func() {
			for time.Now().Before(until) {
				time.Sleep(upTo(o.Pause, dice))
				do(i%replicas, fmt.Sprint("k", i/replicas%o.Names), dice)
			}
		})
	}
	all.Wait()
}

func upTo(d time.Duration, dice *rand.Rand) time.Duration {
	return time.Duration(dice.Int64N(int64(d)))
}
