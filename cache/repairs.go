package cache

import (
	"context"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// repairs repeats invalidations that failed, until the store takes them.
type repairs struct {
	mu      sync.Mutex
	due     map[string]time.Time // when each name was to be deleted
	running bool
}

// mostRepairs bounds the names that wait for their deletion; what is over it is not repeated.
const mostRepairs = 10_000

// repairing are the pauses between tries.
var repairing = recompute.Backoff{Min: 100 * time.Millisecond, Max: time.Second, Jitter: 0.5}

// repair sees to it that names are deleted once the store can, as of now: what is written meanwhile stays.
func (c *Cache[V]) repair(names ...string) {
	c.repairs.mu.Lock()
	defer c.repairs.mu.Unlock()
	if c.repairs.due == nil {
		c.repairs.due = make(map[string]time.Time)
	}
	for _, name := range names {
		if _, ok := c.repairs.due[name]; ok || len(c.repairs.due) < mostRepairs {
			c.repairs.due[name] = time.Now()
		}
	}
	if !c.repairs.running && c.tasks.Go(c.repairAll) == nil {
		c.repairs.running = true
	}
}

// repairAll tries each name in turn, with pauses while the store fails.
func (c *Cache[V]) repairAll(ctx context.Context) {
	for pause := range repairing.Pauses() {
		for name, at := range c.repairs.list() {
			if c.store.Delete(ctx, time.Since(at), name) == nil {
				c.repairs.done(name, at)
			}
		}
		if c.repairs.stop() {
			return
		}
		if !recompute.Pause(ctx, pause) {
			return
		}
	}
}

// Undeleted returns how many keys wait to be deleted in the store, since a Delete (or Set) of this process failed: until
// then others may be served what they were deleted for. It counts 10,000 at most, and what is over that is not repeated.
func (c *Cache[V]) Undeleted() int {
	c.repairs.mu.Lock()
	defer c.repairs.mu.Unlock()
	return len(c.repairs.due)
}

func (r *repairs) list() map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make(map[string]time.Time, len(r.due))
	for name, at := range r.due {
		list[name] = at
	}
	return list
}

// done crosses off a name, unless it was to be deleted again meanwhile.
func (r *repairs) done(name string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due[name].Equal(at) {
		delete(r.due, name)
	}
}

// stop ends the repairs if nothing is left to do.
func (r *repairs) stop() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = len(r.due) > 0
	return !r.running
}
