package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// margin is added to the time for which a store remembers that a computation has begun.
const margin = 5 * time.Second

// longest keeps the sum of two times from overflowing.
const longest = math.MaxInt64 / 4

type fenceKey struct{}

// FenceOf returns the fence of the computation that ctx belongs to, 0 if the store gave none. A later computation of
// the same key has a higher one: a resource that refuses writes with a lower fence than it has seen is safe from a
// computation that was paused and superseded.
func FenceOf(ctx context.Context) Fence {
	f, _ := ctx.Value(fenceKey{}).(Fence)
	return f
}

// compute takes a fence, computes and publishes. The computation runs under work, which ends with the lease; it is
// waited for until ctx ends, so that one that goes on without its lease is not joined by a second.
func (r *run[V]) compute(ctx, work context.Context) (answer[V], error) {
	asOf := r.clock.now()
	fence, e, err := r.store.Begin(ctx, r.call.key, r.seen.fence, min(r.o.Limit, longest)+min(r.o.Lease, longest)+margin)
	failed := (*FailedError)(nil)
	switch {
	case errors.As(err, &failed):
		return answer[V]{}, err
	case errors.Is(err, ErrPass):
		return answer[V]{}, errPassed
	case err != nil:
		r.o.Trace.storeFailed("begin", err)
		known := r.clock.now()
		if i := r.standIn(r.call.key, err); !r.call.anew && i.unpublished && i.windows.Phase(i.now()) == stale.Fresh {
			if a, ok, end := r.vain(i, known, err); ok {
				return a, end
			}
		}
		fence, r.begin = 0, err
	case e.Data != nil:
		if i := r.read(r.call.key, e); r.usable(i) {
			return answer[V]{item: i, asOf: asOf}, nil
		}
	}
	if work.Err() != nil {
		return answer[V]{}, lost(work, context.Cause(work))
	}
	i, pass, err := r.work(ctx, context.WithValue(work, fenceKey{}, fence))
	switch {
	case err == errGaveUp:
		return answer[V]{}, err
	case err == errAlone:
		r.tell(ctx, Failure{Fence: fence, Pause: r.pause, Pass: true})
		return answer[V]{passed: true}, err
	case err != nil:
		r.fail(ctx, err, fence)
		return answer[V]{said: ctx.Err() == nil}, err
	case pass:
		return r.pass(ctx, i, fence, asOf), nil
	}
	return r.publish(ctx, i, fence, asOf), nil
}

// vain ends a flight that would compute what this process has computed before and still can't publish. Who waits for it
// looks again, and is served that; or gets it at once where the store takes no writes. It does not if the store has
// something that is only kept: looking again would lead here again.
func (r *run[V]) vain(i item[V], known moment, why error) (a answer[V], ok bool, err error) {
	switch {
	case r.behind:
		return a, true, errInVain
	case errors.Is(why, ErrRefused):
		return answer[V]{item: i, asOf: known}, true, nil
	}
	return a, !r.seen.found || r.spared, errOthers
}

// alone computes without the fleet: the answer of this key must not be stored.
func (r *run[V]) alone(ctx context.Context) (answer[V], error) {
	asOf := r.clock.now()
	i, pass, err := r.work(ctx, context.WithValue(ctx, fenceKey{}, Fence(0))) // not that of a computation which asks for this one
	a := answer[V]{item: i, leader: r.call, asOf: asOf, passed: pass}
	return a, err // without an election there is no verdict: it is for those who asked before
}

// errAlone ends a flight whose computation keeps its result to itself.
var errAlone = fmt.Errorf("%w, nor shared", ErrPass)

// work runs the computation. pass says that its result must not be stored.
func (r *run[V]) work(ctx, work context.Context) (i item[V], pass bool, err error) {
	wait, release := context.WithCancelCause(ctx)
	defer release(nil)
	free, cut, end := recompute.Cut(context.WithValue(work, formerKey{}, r), r.tasks)
	leave := r.slot.hold()
	says := new(verdict)
	inside := r.slot.give(context.WithValue(free, verdictKey{}, says))
	began := time.Now()
	v, err := recompute.Call(wait, r.tasks, func(called context.Context) (V, error) {
		defer leave()
		defer end()
		says.pass = func(pause time.Duration) bool {
			if cut() {
				says.pause.CompareAndSwap(0, int64(pause))
				says.alone.Store(true)
				leave()
				recompute.Overlook(called)
				release(errAlone)
			}
			return says.alone.Load()
		}
		return r.call.compute(inside)
	})
	cost := time.Since(began)
	if says.alone.Load() {
		r.pause, err = time.Duration(says.pause.Load()), errAlone
	}
	r.o.Trace.computed(cost, err)
	absent := notFound(err)
	if err != nil && !absent {
		return item[V]{}, false, lost(work, err)
	}
	policy := r.o.Policy
	if p := says.lasting.Load(); p != nil {
		policy = *p
	}
	return r.wrap(v, absent, cost, policy), says.noStore.Load(), nil
}

// pass tells the fleet that the answer must not, or can't, be stored.
func (r *run[V]) pass(ctx context.Context, i item[V], fence Fence, begun moment) answer[V] {
	r.seal()
	a := answer[V]{item: i, leader: r.call, asOf: r.clock.now(), passed: true}
	if errors.Is(r.tell(ctx, Failure{Fence: fence, Pause: passFor, Pass: true}), ErrFenced) {
		r.o.Trace.overtaken()
		a.asOf = begun
	}
	return a
}

// tell tells the fleet of a computation without a result to share, if there is a fence for it.
func (r *run[V]) tell(ctx context.Context, f Failure) error {
	if f.Fence == 0 {
		return nil
	}
	err := r.store.Fail(context.WithoutCancel(ctx), r.call.key, f)
	if err != nil && !errors.Is(err, ErrFenced) {
		r.o.Trace.storeFailed("fail", err)
	}
	return err
}

// lost returns errGaveUp if work ended with its lease, else err.
func lost(work context.Context, err error) error {
	if errors.Is(context.Cause(work), recompute.ErrLost) {
		return errGaveUp
	}
	return err
}

// notFound says whether an error is the negative answer. A panic is none, whatever it was given, nor is what is the
// caller's own.
func notFound(err error) bool {
	panicked, mark := (*recompute.PanicError)(nil), (*ownError)(nil)
	return errors.Is(err, ErrNotFound) && !errors.As(err, &panicked) && !errors.As(err, &mark)
}

// fail tells the fleet of a failure: those who wait share it, and for Policy.Cooldown nobody tries again. A panic is
// shared but not remembered; what is only about this run (its context ended) is kept to its own callers.
func (r *run[V]) fail(ctx context.Context, err error, fence Fence) {
	panicked := (*recompute.PanicError)(nil)
	f := Failure{Fence: fence, Text: err.Error()}
	switch {
	case r.call.own(err):
		return
	case errors.As(err, &panicked):
		f.Text = fmt.Sprint("panic: ", panicked.Value)
	case shareable(err):
		f.Pause = r.o.Policy.Cooldown
	default:
		return
	}
	switch err := r.tell(ctx, f); {
	case errors.Is(err, ErrFenced):
		return // it is of a time before a deletion
	case fence != 0 && err == nil && !r.board.hears():
		return // the store knows; we would not hear of a deletion that ends it
	}
	r.cooldown = f.Pause
}

// shareable says whether a failure is of the source, not of the run.
func shareable(err error) bool {
	panicked := (*recompute.PanicError)(nil)
	return !errors.As(err, &panicked) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) &&
		!errors.Is(err, recompute.ErrGoexit) && !errors.Is(err, recompute.ErrClosed) &&
		!errors.Is(err, recompute.ErrAbandoned) && !errors.Is(err, recompute.ErrLimit) && !errors.Is(err, recompute.ErrLost)
}

// wrap makes an item of a value. Every caller gets what the stored bytes decode to, the computing one too, so that
// a miss and a hit do not differ.
func (c *Cache[V]) wrap(v V, absent bool, cost time.Duration, policy stale.Policy) item[V] {
	if absent {
		policy = policy.Absent()
	}
	policy = policy.Spread(rand.Float64())
	i := item[V]{found: true, absent: absent, value: v, windows: policy, cost: cost, at: time.Now()}
	if absent {
		i.payload = []byte{}
		return i
	}
	payload, err := c.o.Codec.Encode(v)
	var decoded V
	if err == nil {
		decoded, err = c.o.Codec.Decode(payload)
	}
	if err != nil {
		c.o.Trace.unencodable(err)
		return i // its callers get it, the store does not
	}
	if payload == nil {
		payload = []byte{}
	}
	i.value, i.payload, i.taken = decoded, payload, new(atomic.Bool)
	return i
}

// publish writes the item under its fence. The flight takes nobody aboard from before the write, so that the store's
// verdict counts for all who are: accepted means that nothing was deleted since they asked.
func (r *run[V]) publish(ctx context.Context, i item[V], fence Fence, begun moment) answer[V] {
	w := i.write(r.call.key, fence)
	if i.payload == nil || w.Data == nil && !r.seen.found {
		return r.pass(ctx, i, fence, begun) // there is nothing to write, nor to remove
	}
	a := answer[V]{item: i, leader: r.call}
	if fence == 0 {
		r.keep(w, begun, r.begin)
	}
	r.seal()
	a.asOf = r.clock.now()
	if fence == 0 {
		return a // no verdict to be had
	}
	err := r.store.Set(context.WithoutCancel(ctx), r.call.key, w)
	switch {
	case err == nil && w.Data == nil: // useful for no time: what stood there is gone, and nobody is to queue for it
		return r.pass(ctx, i, fence, begun)
	case err == nil:
		a.item.fence = fence
		r.near.keep(r.call.key.Name, &known{entry: Entry{Data: w.Data, Fence: fence}}, begun)
		if i.phase() < stale.WhileRevalidate { // nobody else may be served with it: they are not to queue for it
			r.tell(ctx, Failure{Fence: fence, Pass: true})
		}
	case errors.Is(err, ErrFenced):
		r.o.Trace.overtaken()
		a.asOf = begun // only those who asked before it began may have it, whichever flight they are on
		r.board.leave(r.call.key.Name, answer[V]{item: i, asOf: begun})
	case errors.Is(err, ErrTooBig):
		r.o.Trace.storeFailed("set", err)
		return r.pass(ctx, i, fence, begun)
	default: // no verdict either, and all who wait are not to compute again because the store has gone
		r.o.Trace.storeFailed("set", err)
		r.keep(w, begun, err)
		r.lost = err // what this process keeps does not stand in for what a store that takes fences goes on answering
	}
	return a
}

// keep remembers in this process what could not be published.
func (r *run[V]) keep(w Write, begun moment, why error) {
	if w.Data != nil {
		k := &known{entry: Entry{Data: w.Data, Fence: w.Fence}, unpublished: true, refused: errors.Is(why, ErrRefused)}
		r.near.keep(r.call.key.Name, k, begun)
	}
	if r.near.find(r.call.key.Name) == nil {
		r.lost = why
	}
}

// write returns what the store is asked to put for the item: nothing, if it is useful for no time.
func (i item[V]) write(key Key, fence Fence) Write {
	w := Write{Fence: fence, TTL: i.windows.Retain()}
	if w.TTL > 0 {
		w.Data = envelope{absent: i.absent, windows: i.windows, cost: i.cost, value: i.payload}.seal(key)
	}
	return w
}
