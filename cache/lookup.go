package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// Compute makes the value of a key. Its context keeps the values of the context of a caller, but not its end: it
// ends when all callers have cancelled, at Options.Limit, when the lease is lost (cause [recompute.ErrLost]) and at
// Close. It says that there is no value by returning [ErrNotFound] or an error that wraps it.
type Compute[V any] func(ctx context.Context) (V, error)

// GetOrCompute returns the value of key, and computes it if need be. It is [Cache.Lookup] without the details.
func (c *Cache[V]) GetOrCompute(ctx context.Context, key string, compute Compute[V]) (V, error) {
	r, err := c.Lookup(ctx, key, compute)
	return r.Value, err
}

// Lookup returns the value of key and how it came about:
//
//   - a fresh value is served;
//   - a value within WhileRevalidate is served, and one process of the fleet recomputes it behind the answer;
//   - a value within IfError is served if somebody else computes, or if computing fails; else this call computes;
//   - without one, this call computes, or waits for the one that does.
//
// It returns the error of the computation ([*recompute.PanicError] if it panicked), [ErrNotFound] for the negative
// answer, [recompute.ErrBusy] when Options.Wait ran out, [recompute.ErrLimit] when the computation did,
// [recompute.ErrRecursive] when a computation asks for its own key, [ErrClosed], or the error of ctx. Trouble with
// the store or the locker is not an error: then each process computes for itself.
func (c *Cache[V]) Lookup(ctx context.Context, key string, compute Compute[V]) (Result[V], error) {
	began := time.Now()
	r, err := c.lookup(ctx, key, compute, began)
	c.o.Trace.done(r.Outcome, began, err)
	return r, err
}

// call is one Lookup.
type call[V any] struct {
	ctx     context.Context
	key     Key
	compute Compute[V]
	asked   moment
}

// sighting is what a look at the store has led to: an item that can be served, a flight that makes a new one, or an
// error, with the item that was seen.
type sighting[V any] struct {
	item item[V]
	run  *recompute.Flight[answer[V]]
	err  error
}

// note is what a flight tells those who join it.
type note[V any] struct {
	leader *call[V] // whose computation it is
	seen   item[V]  // what the store had
}

func (c *Cache[V]) lookup(ctx context.Context, key string, compute Compute[V], began time.Time) (Result[V], error) {
	if compute == nil {
		return Result[V]{}, errors.New("cache: compute is nil")
	}
	k, err := c.check(ctx, key)
	if err != nil {
		return Result[V]{}, err
	}
	q := &call[V]{ctx: ctx, key: k, compute: compute, asked: c.clock.now()}
	s, found := c.reads.alone(c.tasks, k.Name, func() (sighting[V], bool) { return c.lookPromptly(q) })
	if found && s.run == nil && s.err == nil {
		c.revalidate(q, s.item)
		return c.serve(s.item)
	}
	return c.seek(ctx, q, s, found, key, began)
}

// seek goes on from the first look, if that worked, until there is an answer.
func (c *Cache[V]) seek(ctx context.Context, q *call[V], s sighting[V], found bool, key string, began time.Time) (Result[V], error) {
	patient, cancel := context.WithDeadlineCause(ctx, began.Add(c.o.Wait), recompute.ErrBusy)
	defer cancel()
	for {
		if !found {
			var err error
			q = &call[V]{ctx: ctx, key: q.key, compute: q.compute, asked: c.clock.now()}
			if s, err = c.lookTogether(patient, q); err != nil {
				return c.settle(ctx, patient, key, item[V]{}, err)
			}
		}
		found = false
		switch {
		case s.err != nil:
			return c.settle(ctx, patient, key, s.item, s.err)
		case s.run == nil:
			c.revalidate(q, s.item)
			return c.serve(s.item)
		}
		r, again, err := c.await(patient, q, s)
		switch {
		case again:
			continue
		case err != nil:
			return c.settle(ctx, patient, key, s.item, err)
		}
		return r, nil
	}
}

// lookTogether looks with all who ask at the same time.
func (c *Cache[V]) lookTogether(ctx context.Context, q *call[V]) (sighting[V], error) {
	return c.reads.do(ctx, c.tasks, q.key.Name, func() sighting[V] { return c.look(q) })
}

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
	return c.judge(q, c.get(q.ctx, q.key))
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
		return c.judge(q, c.readAlone(q.key, e)), true
	case errors.Is(err, ErrNotFound):
		return c.judge(q, item[V]{}), true
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
	if err := c.failures.cooling(q.key.Name); err != nil {
		return sighting[V]{item: seen, err: err}
	}
	f, err := c.runs.Start(q.ctx, q.key.Name, note[V]{q, seen}, c.run(q, seen))
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
func (c *Cache[V]) get(ctx context.Context, key Key) item[V] {
	e, err := c.store.Get(context.WithoutCancel(ctx), key)
	switch {
	case err == nil:
		return c.read(key, e)
	case !errors.Is(err, ErrNotFound):
		c.o.Trace.storeFailed("get", err)
	}
	return item[V]{}
}

// await waits for the flight, unless there is a stale value that spares waiting for somebody else's. It says again
// if the flight's result is older than the question. What the flight saw is not served: it may have been deleted
// before the question.
func (c *Cache[V]) await(ctx context.Context, q *call[V], s sighting[V]) (r Result[V], again bool, err error) {
	n := s.run.Note.(note[V])
	if n.leader != q && s.item.phase() == stale.IfError {
		r, err = c.serve(s.item)
		return r, false, err
	}
	a, err := s.run.Wait(ctx)
	switch {
	case errors.Is(err, recompute.ErrRecursive) && n.leader == q:
		c.abandon(s) // started by this look, for nobody
		return r, false, err
	case errors.Is(err, recompute.ErrAbandoned) && !a.said && ctx.Err() == nil:
		return r, true, nil // the others have gone, we have not
	case errors.Is(err, errOthers) && s.item.phase() == stale.IfError:
		r, err = c.serve(s.item)
		return r, false, err
	case errors.Is(err, errOthers), n.leader != q && n.leader.own(err) && ctx.Err() == nil:
		return r, true, nil
	case err != nil:
		return r, false, err
	case a.asOf < q.asked:
		return r, true, nil
	case a.item.absent:
		return r, false, ErrNotFound
	}
	r = Result[V]{Value: c.copyOf(a.item), Outcome: Collapsed, Age: max(0, a.item.now())}
	if a.leader == q {
		r.Outcome = Computed
	}
	return r, false, nil
}

// revalidate starts a flight behind the answer if the item is stale, or early by chance (XFetch).
func (c *Cache[V]) revalidate(q *call[V], i item[V]) {
	if i.phase() == stale.Fresh {
		policy := i.windows
		policy.Beta = c.o.Policy.Beta
		if !policy.Early(i.now(), i.cost, 1-rand.Float64()) {
			return
		}
	}
	if !c.failures.pausing(q.key.Name) {
		_ = c.runs.Go(q.ctx, q.key.Name, note[V]{nil, i}, c.run(q, i))
	}
}

// serve answers with what the store has.
func (c *Cache[V]) serve(i item[V]) (Result[V], error) {
	if i.absent {
		return Result[V]{}, ErrNotFound
	}
	r := Result[V]{Value: c.copyOf(i), Outcome: Stale, Age: max(0, i.now())}
	if i.phase() == stale.Fresh {
		r.Outcome = Hit
	}
	return r, nil
}

// settle is what is left when there is no new value: the stale one, the fallback, the error.
func (c *Cache[V]) settle(ctx, patient context.Context, key string, seen item[V], err error) (Result[V], error) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return Result[V]{}, ctx.Err() // nobody is there to serve
	case notFound(err):
		return Result[V]{}, err
	case ctx.Err() == nil && patient.Err() != nil:
		err = recompute.ErrBusy
	}
	if seen.found && !seen.absent && seen.phase() != stale.Expired && (c.o.StaleIf == nil || c.o.StaleIf(err)) {
		return Result[V]{Value: c.copyOf(seen), Outcome: Stale, Age: max(0, seen.now())}, nil
	}
	if c.o.Fallback == nil || ctx.Err() != nil || c.closed.Load() {
		return Result[V]{}, err
	}
	v, err := c.o.Fallback(ctx, key, err)
	if err != nil {
		return Result[V]{}, err
	}
	return Result[V]{Value: v, Outcome: FellBack}, nil
}
