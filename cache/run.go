package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// answer is the result of a flight.
type answer[V any] struct {
	item   item[V]
	asOf   moment   // when it was known to be valid; callers who asked later look again
	leader *call[V] // whose computation made it; nil if another process's did
	passed bool     // it must not be stored
	said   bool     // an error is what the computation says, not about it
}

// errOthers ends a flight that would have had to wait for another process, but need not: there is something to serve.
var errOthers = errors.New("cache: another process computes")

// errInVain ends a flight behind a value that is fresh but not published, since it still can't be.
var errInVain = fmt.Errorf("%w: the store takes nothing", errOthers)

// inVainFor is how long the next attempt to publish such a value is put off.
const inVainFor = 250 * time.Millisecond

// Why an attempt did not end in a computation. They are compared as they are: a computation may return anything.
var (
	errHeld   = errors.New("cache: another process has the lease")
	errPassed = errors.New("cache: the answer must not be stored, each process is on its own")
	errGaveUp = errors.New("cache: the lease was lost")
	errFull   = errors.New("cache: too many computations are under way")
)

// run is one flight: it elects a process and computes, or waits for the value of the one that does.
type run[V any] struct {
	*Cache[V]
	call     *call[V]
	seen     item[V]
	behind   bool // nobody waits for it: a stale value was served
	spared   bool // there is something to serve, so that nobody need wait for another process
	seal     func()
	cooldown time.Duration // how long the fleet is not to try again, since the store has taken in a failure
	gaveUp   bool          // the computation ended with its lease, once
	left     time.Duration // until the other's lease runs out, if it is not renewed
	begin    error         // why there is no fence
	passed   bool          // the answer must not be stored: there is no election
	entered  bool          // there was room for a computation, once
	slot     *slot         // nil: it needs none
	waiver   *waiver       // to do without
	pause    time.Duration // for which each process is on its own, as the computation said
	lost     error         // why nobody will be served the result, or the store says "stale" as before
}

func (c *Cache[V]) run(q *call[V], seen item[V], w *waiver) recompute.Work[answer[V]] {
	return func(ctx context.Context, seal func()) (answer[V], error) {
		r := &run[V]{Cache: c, call: q, seen: seen, seal: seal, waiver: w}
		defer w.end()
		if !q.anew {
			r.behind, r.spared = seen.phase() >= stale.WhileRevalidate, seen.phase() >= stale.IfError
		}
		if r.behind && c.failures.pausing(q.key.Name) {
			return answer[V]{}, errOthers // the one before has ended, and put this off, since it was asked whether it may begin
		}
		a, err := r.elect(ctx)
		switch {
		case err == errInVain && r.behind:
			c.failures.rest(q.key.Name, inVainFor)
		case err == errOthers && r.behind:
			c.failures.rest(q.key.Name, c.o.Lease) // or each stale read asks for the lease again
		case err == errOthers:
		case (a.passed || err == errAlone) && r.behind:
			c.failures.rest(q.key.Name, passFor)
		case a.passed, err == errAlone:
		case r.behind && err == nil && !seen.local: // a store that goes on saying "stale" would have it computed again at once
			c.failures.note(q.key.Name, r.lost, 0)
		case r.behind || !q.own(err):
			c.failures.note(q.key.Name, err, r.cooldown)
		}
		return a, err
	}
}

// elect asks for the lease until it is granted or a value has come. Losers wait for the value, not for the lease.
func (r *run[V]) elect(ctx context.Context) (answer[V], error) {
	w := r.board.enter(r.call.key.Name, r.o.Lease) // before asking, so that nothing said afterwards is missed
	defer r.board.exit(w)
	for pause := range blind.Pauses() {
		if ctx.Err() != nil {
			break
		}
		a, err := r.tryOnce(ctx, w, pause)
		switch {
		case err == errGaveUp:
			r.gaveUp = true
			continue
		case err == errPassed:
			r.passed = true
			continue
		case err != errHeld && err != errFull:
			return a, err
		case r.spared:
			return answer[V]{}, errOthers
		}
		switch a, ok, err := r.follow(ctx, w, pause, err == errFull); {
		case errors.Is(err, ErrPass):
			r.passed = true
		case ok:
			return a, err
		}
	}
	if cause := context.Cause(ctx); !r.entered && errors.Is(cause, recompute.ErrLimit) {
		return answer[V]{}, fmt.Errorf("%w: %d computations are under way, as many as Options.MaxComputes allows", recompute.ErrBusy, cap(r.slots))
	}
	return answer[V]{}, context.Cause(ctx)
}

// tryOnce computes, if there is room for another computation and no other process has the lease.
func (r *run[V]) tryOnce(ctx context.Context, w *waiter, pause time.Duration) (answer[V], error) {
	if !r.enter(ctx, w, pause) {
		return answer[V]{}, errFull
	}
	r.entered = true
	defer func() {
		r.slot.leave()
		r.slot = nil
	}()
	if r.passed {
		return r.alone(ctx)
	}
	return r.attempt(ctx)
}

// attempt asks for the lease once, and computes if it is granted or nobody can tell.
func (r *run[V]) attempt(ctx context.Context) (answer[V], error) {
	since := time.Now()
	lease, err := r.acquire(ctx)
	switch {
	case err == nil:
		r.o.Trace.acquired(since)
		return r.lead(ctx, lease, since)
	case errors.Is(err, recompute.ErrHeld):
		r.o.Trace.held()
		r.left = r.o.Lease
		if h := (*recompute.HeldError)(nil); errors.As(err, &h) {
			r.left = min(max(h.Left, 0), r.o.Lease)
		}
		return answer[V]{}, errHeld
	case ctx.Err() != nil:
		return answer[V]{}, context.Cause(ctx)
	}
	r.o.Trace.failed(err)
	return r.compute(ctx, ctx)
}

// acquire asks for the lease and waits for the answer even if ctx ends: one that is not waited for is taken back behind
// our back, for which neither Close nor the owner of the client waits. lead sees that ctx has ended, and releases it.
func (r *run[V]) acquire(ctx context.Context) (recompute.Lease, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Lease)
	defer cancel()
	return r.locker.Acquire(ctx, r.call.key.Name, r.o.Lease)
}

// lead computes under the lease. If it is lost and nobody has taken it, or lost again, a locker that can't keep leases
// must not keep us from ever finishing: then we begin again without one, and the fence is protection enough.
func (r *run[V]) lead(ctx context.Context, lease recompute.Lease, since time.Time) (answer[V], error) {
	work, stop := recompute.Hold(ctx, r.tasks, lease, since, r.o.Lease, r.o.Trace.Lease)
	defer func() {
		stop()
		r.o.Trace.released(lease.Release(context.WithoutCancel(ctx)))
	}()
	a, err := r.compute(ctx, work)
	if err == errGaveUp && (r.gaveUp || !errors.Is(lease.Extend(ctx, r.o.Lease), recompute.ErrLost)) {
		return r.compute(ctx, ctx)
	}
	return a, err
}

// follow waits until there is a reason to look, unless there is one now, and looks. It says whether it found how a
// computation ended that was under way after the question.
func (r *run[V]) follow(ctx context.Context, w *waiter, pause time.Duration, now bool) (answer[V], bool, error) {
	var e Event
	var ok bool
	if now {
		e, ok = w.take()
	} else {
		e, ok = w.wait(ctx, pause, r.left)
	}
	if ctx.Err() != nil {
		return answer[V]{}, false, nil
	}
	if a, left := w.found().(answer[V]); left && a.asOf > r.call.asked {
		return a, true, nil
	}
	if asOf := r.clock.before(e.Entry.Age); ok && e.Key == r.call.key && asOf > r.call.asked {
		if e.Kind == Failed {
			return answer[V]{}, true, e.Err
		}
		if e.Entry.Data != nil {
			if i := r.read(e.Key, e.Entry); r.usable(i) {
				return answer[V]{item: i, asOf: asOf}, true, nil
			}
		}
	}
	asOf := r.clock.now()
	i, _ := r.get(ctx, r.call.key)
	return answer[V]{item: i, asOf: asOf}, r.usable(i), nil
}

// usable says whether an item was published since the store was asked. It does not ask whether it is fresh: that
// would switch early recomputation off.
func (r *run[V]) usable(i item[V]) bool {
	return i.fence > r.seen.fence && i.phase() >= stale.WhileRevalidate
}
