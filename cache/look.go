package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// sighting is what a look at the store has led to: an item that can be served, a flight that makes a new one, or an
// error, with the item that was seen.
type sighting[V any] struct {
	item item[V]
	run  *recompute.Flight[answer[V]]
	err  error
}

// lookTogether looks with all who ask at the same time.
func (c *Cache[V]) lookTogether(ctx context.Context, q *call[V]) (sighting[V], error) {
	return c.reads.do(ctx, c.tasks, q.key.Name, func() sighting[V] { return c.look(q) })
}

// soon is how long a caller waits for the store who has a last known value. Less would be taken by a busy machine for
// trouble, and then a deletion may not have been heard of either.
const soon = 150 * time.Millisecond

// lookSoon is lookTogether for those who have a last known value: it is served if the store takes its time (it has had
// 50 ms before, if it can be asked promptly), and at once while the store is away.
func (c *Cache[V]) lookSoon(ctx context.Context, q *call[V]) (sighting[V], error) {
	if q.anew || c.near.find(q.key.Name) == nil {
		return c.lookTogether(ctx, q)
	}
	if c.away.now() {
		if i := c.standIn(q.key, ErrUnreachable); i.phase() >= stale.WhileRevalidate {
			c.reads.probe(c.tasks, q.key.Name, func() sighting[V] { return c.look(q) })
			return sighting[V]{item: i}, nil
		}
	}
	hurried, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer c.away.until(func() { cancel(ErrUnreachable) })()
	defer time.AfterFunc(soon, func() {
		if c.board.hears() { // still: events often end a moment after the store
			cancel(errSlow)
		}
	}).Stop()
	s, err := c.lookTogether(hurried, q)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.Canceled) {
		return s, err
	}
	if i := c.standIn(q.key, context.Cause(hurried)); i.phase() >= stale.WhileRevalidate {
		return sighting[V]{item: i}, nil
	}
	return c.lookTogether(ctx, q)
}

// errSlow is why a caller no longer waits for the store, of which he would hear if it deleted his value.
var errSlow = errors.New("cache: the store takes its time")

// look asks the store. A miss starts the flight at once, before the next look is sent, so that those who take that
// find it; and while a flight is under way for want of anything to serve, there is nothing to ask the store for.
func (c *Cache[V]) look(q *call[V]) (s sighting[V]) {
	defer func() {
		if p := recover(); p != nil { // of a codec or store that is not ours
			s = sighting[V]{err: fmt.Errorf("cache: reading panicked: %v", p)}
		}
	}()
	if f := c.awaited(q.key.Name); f != nil {
		return sighting[V]{run: f}
	}
	i, err := c.get(q.ctx, q.key)
	if err != nil {
		i = c.standIn(q.key, err)
	}
	return c.judge(q, i)
}

// lookPromptly looks on the caller's own goroutine, where the store can be asked so. It says whether that worked.
func (c *Cache[V]) lookPromptly(q *call[V]) (s sighting[V], ok bool) {
	defer func() {
		if p := recover(); p != nil {
			ok = false // look finds out
		}
	}()
	if c.prompt == nil {
		return s, false
	}
	if f := c.awaited(q.key.Name); f != nil {
		return sighting[V]{run: f}, true
	}
	e, err := c.prompt.GetPromptly(q.ctx, q.key)
	switch {
	case err == nil:
		i := c.readAlone(q.key, e)
		if i.found {
			c.near.saw(q.key.Name, e, q.asked)
		}
		return c.judge(q, i), true
	case errors.Is(err, ErrNotFound):
		return c.judge(q, c.standIn(q.key, err)), true
	case errors.Is(err, ErrUnreachable):
		if i := c.standIn(q.key, err); i.phase() >= stale.WhileRevalidate {
			return sighting[V]{item: i}, true
		}
	}
	return s, false
}

// awaited returns the flight for name that was started for want of anything to serve.
func (c *Cache[V]) awaited(name string) *recompute.Flight[answer[V]] {
	if f := c.runs.Find(name); f != nil && !f.Owed() && f.Note.(note[V]).seen.phase() == stale.Expired {
		return f
	}
	return nil
}

// judge decides what is to be done with what was seen.
func (c *Cache[V]) judge(q *call[V], seen item[V]) sighting[V] {
	if seen.phase() >= stale.WhileRevalidate {
		return sighting[V]{item: seen}
	}
	return c.begin(q, seen)
}

// begin joins the flight for what was seen, or starts one.
func (c *Cache[V]) begin(q *call[V], seen item[V]) sighting[V] {
	if err := c.failures.cooling(q.key.Name); err != nil {
		return sighting[V]{item: seen, err: err}
	}
	w := c.slots.waiver()
	f, err := c.runs.Start(q.ctx, q.key.Name, note[V]{q, seen, w}, c.run(q, seen, w))
	return sighting[V]{item: seen, run: f, err: err}
}

// abandon ends the flight that a look has started if all who asked for it cancelled meanwhile.
func (c *Cache[V]) abandon(s sighting[V]) {
	if s.run == nil {
		return
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = s.run.Wait(gone) // boards and leaves
}

// get reads the entry of key. It runs on no caller's time: others share the read.
func (c *Cache[V]) get(ctx context.Context, key Key) (item[V], error) {
	asOf := c.clock.now()
	e, err := c.store.Get(context.WithoutCancel(ctx), key)
	c.away.found(errors.Is(err, ErrUnreachable))
	switch {
	case err == nil:
		i := c.read(key, e)
		if i.found {
			c.near.saw(key.Name, e, asOf)
		}
		return i, nil
	case !errors.Is(err, ErrNotFound):
		c.o.Trace.storeFailed("get", err)
	}
	return item[V]{}, err
}
