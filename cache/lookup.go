package cache

import (
	"context"
	"errors"
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
	return c.answer(ctx, key, compute, false)
}

// Refresh is a Lookup that takes no stored value for an answer: it computes, or joins the computation under way, here
// or in another process. What is stored still stands in for an error.
func (c *Cache[V]) Refresh(ctx context.Context, key string, compute Compute[V]) (Result[V], error) {
	return c.answer(ctx, key, compute, true)
}

func (c *Cache[V]) answer(ctx context.Context, key string, compute Compute[V], anew bool) (Result[V], error) {
	began := time.Now()
	r, err := c.lookup(ctx, key, compute, anew, began)
	c.o.Trace.done(r.Outcome, began, err)
	return r, err
}

// call is one Lookup.
type call[V any] struct {
	ctx     context.Context
	key     Key
	compute Compute[V]
	anew    bool // no stored value is an answer
	asked   moment
}

// note is what a flight tells those who join it.
type note[V any] struct {
	leader *call[V] // whose computation it is; nil: nobody waits for it
	seen   item[V]  // what the store had
	waiver *waiver
}

func (c *Cache[V]) lookup(ctx context.Context, key string, compute Compute[V], anew bool, began time.Time) (Result[V], error) {
	if compute == nil {
		return Result[V]{}, errors.New("cache: compute is nil")
	}
	k, err := c.check(ctx, key)
	if err != nil {
		return Result[V]{}, err
	}
	q := &call[V]{ctx: ctx, key: k, compute: compute, anew: anew, asked: c.clock.now()}
	if anew {
		return c.seek(ctx, q, sighting[V]{}, false, key, began)
	}
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
			q = &call[V]{ctx: ctx, key: q.key, compute: q.compute, anew: q.anew, asked: q.asked}
			if s, err = c.lookSoon(patient, q); err != nil {
				return c.settle(ctx, patient, key, item[V]{}, err)
			}
			if q.anew && s.run == nil && s.err == nil {
				s = c.begin(q, s.item)
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

// await waits for the flight, unless there is a stale value that spares waiting for somebody else's. It says again
// if the flight's result is older than the question. What the flight saw is not served: it may have been deleted
// before the question.
func (c *Cache[V]) await(ctx context.Context, q *call[V], s sighting[V]) (r Result[V], again bool, err error) {
	n := s.run.Note.(note[V])
	if n.leader != q && !q.anew && s.item.phase() == stale.IfError {
		r, err = c.serve(s.item)
		return r, false, err
	}
	c.slots.waive(q.ctx, n.waiver)
	a, err := s.run.Wait(ctx)
	switch {
	case errors.Is(err, recompute.ErrRecursive) && n.leader == q:
		c.abandon(s) // started by this look, for nobody
		return r, false, err
	case errors.Is(err, recompute.ErrAbandoned) && !a.said && ctx.Err() == nil:
		return r, true, nil // the others have gone, we have not
	case errors.Is(err, errOthers) && !q.anew && s.item.phase() == stale.IfError:
		r, err = c.serve(s.item)
		return r, false, err
	case errors.Is(err, errOthers), n.leader != q && n.leader.own(err) && ctx.Err() == nil:
		return r, true, nil
	case err != nil:
		return r, false, err
	case a.asOf < q.asked, q.anew && a.item.local:
		return r, true, nil
	case a.item.absent:
		return r, false, ErrNotFound
	}
	r = Result[V]{Value: c.copyOf(a.item), Outcome: Collapsed, Age: max(0, a.item.now())}
	switch {
	case a.item.local:
		r.Outcome = Stale
	case a.leader == q:
		r.Outcome = Computed
	}
	return r, false, nil
}

// revalidate starts a flight behind the answer if the item is stale, or early by chance (XFetch).
func (c *Cache[V]) revalidate(q *call[V], i item[V]) {
	if i.phase() == stale.Fresh {
		if i.local {
			return // the store is asked in vain
		}
		policy := i.windows
		policy.Beta = c.o.Policy.Beta
		if !policy.Early(i.now(), i.cost, 1-rand.Float64()) {
			return
		}
	}
	if !c.failures.pausing(q.key.Name) {
		w := c.slots.waiver()
		_ = c.runs.Go(q.ctx, q.key.Name, note[V]{nil, i, w}, c.run(q, i, w))
	}
}

// serve answers with what the store has.
func (c *Cache[V]) serve(i item[V]) (Result[V], error) {
	if i.absent {
		return Result[V]{}, ErrNotFound
	}
	r := Result[V]{Value: c.copyOf(i), Outcome: Stale, Age: max(0, i.now())}
	if i.phase() == stale.Fresh && !i.local {
		r.Outcome = Hit
	}
	return r, nil
}

// settle is what is left when there is no new value: the stale one, the fallback, the error.
func (c *Cache[V]) settle(ctx, patient context.Context, key string, seen item[V], err error) (Result[V], error) {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return Result[V]{}, ctx.Err() // nobody is there to serve
	case notFound(err), err == errAlone:
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
