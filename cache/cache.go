// Package cache answers from a store and recomputes what is missing.
//
// A [Cache] puts a [Store] in front of something slow. Concurrent misses of a key are merged, in the process and,
// through a lease, across all processes that share the store. Whoever does not get to compute is served the stale
// value, or waits for the new one, or falls back:
//
//	pages, err := cache.New[Page](redisstore.New(rdb, redisstore.Options{Prefix: "docs"}), cache.Options[Page]{
//		Policy: stale.Policy{Fresh: time.Minute, WhileRevalidate: 10 * time.Minute, IfError: time.Hour},
//	})
//	page, err := pages.GetOrCompute(ctx, "net/http", func(ctx context.Context) (Page, error) { return render(ctx, "net/http") })
//
// A computation is not run exactly once: a process that is paused for longer than its lease runs beside its
// successor. The store's [Fence] keeps such a late result out of the cache, and is given to the computation (see
// [FenceOf]) so that it can be kept out of other places too.
package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// Cache answers for values of type V. Create one with [New]. It is safe for concurrent use.
type Cache[V any] struct {
	store  Store
	prompt Prompter // the store, if it is one
	locker recompute.Locker
	o      Options[V]
	shape  string // the schema of V, see Key
	shared bool   // a decoded value may be given to several callers

	tasks    *recompute.Tasks
	runs     *recompute.Group[answer[V]]
	reads    reads[sighting[V]]
	board    board
	failures failures
	repairs  repairs
	clock    *clock
	near     *near
	slots    slots
	away     absence
	closed   atomic.Bool
}

// New returns a Cache on store. It reports every option that can't work, in one error.
func New[V any](store Store, o Options[V]) (*Cache[V], error) {
	o, err := o.complete(store)
	if err != nil {
		return nil, err
	}
	c := &Cache[V]{
		store:  store,
		locker: o.Locker,
		o:      o,
		shape:  shapeOf[V](o.Codec),
		shared: o.Clone != nil || immutable[V]() || declared[V](),
		tasks:  recompute.NewTasks(),
		clock:  &clock{start: time.Now()},
	}
	c.near = newNear(c.clock, c.shape, o.Near)
	c.slots = newSlots(o.MaxComputes)
	c.prompt, _ = store.(Prompter)
	c.runs = recompute.NewGroup[answer[V]](c.tasks, o.Limit)
	c.reads.unwanted = c.abandon
	if w, ok := store.(Watcher); ok {
		err = c.tasks.Go(func(ctx context.Context) { w.Watch(ctx, c.hear) })
	}
	return c, err
}

// patience is how long Close waits for computations that do not heed their context.
const patience = 5 * time.Second

// Close refuses new calls, ends the computations under way with cause [ErrClosed], releases their leases and waits
// for all goroutines of the cache, 5 s at most: after that it returns an error that says how many computations
// ignore their context. It does not close the store's client. Closing again is harmless.
func (c *Cache[V]) Close() error {
	c.closed.Store(true)
	return c.tasks.Close(patience)
}

// Oldest returns how long the oldest computation (or wait for one) has been under way, 0 when there is none. More
// than Options.Limit means that a computation hangs and ignores its context: use it in a health check. One that has
// called [Pass] may last as long as it likes, and doesn't count.
func (c *Cache[V]) Oldest() time.Duration { return c.tasks.Oldest() }

// hear takes in what the store announces.
func (c *Cache[V]) hear(e Event) {
	c.near.hear(e)
	switch e.Kind {
	case Deleted:
		c.forget(e.Key.Name) // whoever asks from now on must not get what began before
	case Published:
		c.runs.Forget(e.Key.Name) // whoever asks from now on finds it, and need not wait for a computation of ours
		if e.Key.Schema == c.shape {
			c.failures.drop(e.Key.Name)
		}
	case Failed:
		if failed := (*FailedError)(nil); errors.As(e.Err, &failed) && e.Key.Schema == c.shape {
			c.failures.hear(e.Key.Name)
		}
	case Connected, Disconnected:
		c.o.Trace.push(e.Kind == Connected, e.Err)
	}
	c.board.post(e)
}
