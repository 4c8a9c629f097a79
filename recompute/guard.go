package recompute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
)

// GuardOptions configures a [Guard]. The zero value works.
type GuardOptions struct {
	// TTL is for how long a lease is asked, and extended: how long others wait after a crash. 0: one and a half times the 99th
	// percentile of what the last 256 runs took, within the two bounds below, 10 s before the first run.
	TTL      time.Duration
	LeastTTL time.Duration // default 2 s; pauses of the process shorter than that do no harm
	MostTTL  time.Duration // default 30 s

	Wait    time.Duration // longest that Do waits for the lease; default 10 s
	Retry   Backoff       // pauses between questions when nothing wakes us; must have jitter; default 50 ms … 1 s, ± half, longer for a [Waker]
	MinLeft time.Duration // a lease granted so late that less is left of it is given back; default a third of its TTL
	MaxHold time.Duration // longest that a run may take: then its context ends and the lease is not extended; default 15 min

	Trace Trace
}

// Guard runs work under leases: it gets one, keeps it alive while the work runs, tells the work when it is lost, and gives it back.
// Use one for each kind of work, since the TTL is made from what runs take. Create one with [NewGuard].
type Guard struct {
	locker    Locker
	o         GuardOptions
	excludes  any  // what else has this asks the same locker: work under the one would wait for itself at the other
	patient   bool // nobody has said how often to ask
	took      durations
	contended atomic.Int64 // when somebody was refused, in Unix ns
}

// NewGuard returns a Guard that asks l. Options that can't work are an error.
func NewGuard(l Locker, o GuardOptions) (*Guard, error) {
	if err := o.validate(l); err != nil {
		return nil, err
	}
	g := &Guard{locker: l, o: o.withDefaults(), patient: o.Retry == Backoff{}}
	if g.excludes = l; reflect.TypeOf(l).Kind() != reflect.Pointer { // others may be equal and not the same, or can't be compared
		g.excludes = g
	}
	return g, nil
}

// TTL returns for how long the next lease will be asked.
func (g *Guard) TTL() time.Duration {
	if g.o.TTL != 0 {
		return g.o.TTL
	}
	return min(max(g.took.ttl(), g.o.LeastTTL), g.o.MostTTL)
}

// Measured returns the 99th percentile of what the last runs took, and how many those were: what an adaptive TTL is made from.
// Runs that failed count only if they were longer than the others.
func (g *Guard) Measured() (p99 time.Duration, runs int) { return g.took.percentile() }

// Do waits for the lease of key, for [GuardOptions].Wait at most, and runs work under it. If it gets none the error is an
// [ErrNotRun] that names the reason, as ErrHeld; otherwise it is the work's own.
//
// The context of the work ends with ctx, with cause [ErrLost] when the lease is lost and [ErrLimit] when the work takes too long, and
// the work should then stop. It runs on the caller's goroutine: Do does not return before it, and a panic or runtime.Goexit goes on to
// the caller once the lease is released. The lease is extended until the work has returned, also when ctx has ended.
//
// Exclusion is not guaranteed, see the package's doc: what the work writes needs a guard of its own, for example [Held.Fence]. So a
// work that returns nil has been done, even if the lease was lost: that is no error of Do, but [Trace] tells.
func (g *Guard) Do(ctx context.Context, key string, work func(ctx context.Context, h *Held) error) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: %w", ErrNotRun, errNoKey)
	case work == nil:
		return fmt.Errorf("%w: %w", ErrNotRun, errNoWork)
	case inside(ctx, g.excludes, key):
		return fmt.Errorf("%w: %w", ErrNotRun, ErrRecursive)
	}
	h, err := g.wait(ctx, key)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	return g.run(ctx, key, h, work)
}

// Try runs work under the lease of key unless another holder has it, or had it a moment ago and nobody can tell: for periodic jobs,
// which are skipped then. ran says whether the work was run. If the locker could not tell, it was not and err says why. For the rest
// it is as [Guard.Do].
func (g *Guard) Try(ctx context.Context, key string, work func(ctx context.Context, h *Held) error) (ran bool, err error) {
	switch {
	case key == "":
		return false, fmt.Errorf("%w: %w", ErrNotRun, errNoKey)
	case work == nil:
		return false, fmt.Errorf("%w: %w", ErrNotRun, errNoWork)
	}
	h, err := g.ask(ctx, key, time.Now(), 0)
	switch {
	case errors.Is(err, ErrHeld):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrNotRun, err)
	}
	return true, g.run(ctx, key, h, work)
}

var (
	errNoKey    = errors.New("recompute: the key is empty: one lease for everything would have everything wait for everything")
	errNoWork   = errors.New("recompute: work is nil")
	errWaited   = errors.New("recompute: no lease within the time to wait")
	errNoReturn = errors.New("recompute: the work panicked or called runtime.Goexit")
)

// crowded is for how long after a refusal the next one who comes queues before it asks: most never are refused, and to listen is not
// for nothing.
const crowded = 10 * time.Second

// wait asks until the lease is granted or the time is up.
func (g *Guard) wait(ctx context.Context, key string) (*Held, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, g.o.Wait, errWaited)
	defer cancel()
	q := queue{guard: g, key: key}
	defer q.leave()
	if time.Now().UnixNano()-g.contended.Load() < int64(crowded) {
		q.join(ctx)
	}
	began, refused := time.Now(), 0
	var last error
	for pause := range g.o.Retry.Pauses() {
		h, err := g.ask(ctx, key, began, refused)
		switch {
		case err == nil:
			return h, nil
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			return nil, gaveUp(ctx, last)
		case errors.Is(err, ErrHeld):
			refused++
			g.contended.Store(time.Now().UnixNano())
			if q.join(ctx) {
				pause = 0 // it may have been released before we listened
			}
		}
		if last = err; !q.rest(ctx, pause, err) {
			return nil, gaveUp(ctx, last)
		}
	}
	panic("unreachable: pauses have no end")
}

// gaveUp says why nobody waits any more, and what the last answer was, if there was one.
func gaveUp(ctx context.Context, last error) error {
	if last == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (%w)", context.Cause(ctx), last)
}

// ask asks once. began is when the caller came, refused how often it was refused since.
func (g *Guard) ask(ctx context.Context, key string, began time.Time, refused int) (*Held, error) {
	ttl, since := g.TTL(), time.Now()
	lease, err := g.locker.Acquire(ctx, key, ttl)
	switch {
	case errors.Is(err, ErrHeld):
		g.o.Trace.held()
		return nil, err
	case err != nil:
		if ctx.Err() == nil {
			g.o.Trace.failed(err)
		}
		return nil, err
	}
	h := newHeld(lease, since, ttl)
	if left, least := h.Left(), cmp.Or(g.o.MinLeft, ttl/3); left < least {
		err := fmt.Errorf("recompute: the lease was granted when %v was left of %v, and should be %v", left, ttl, least)
		defer func() { g.o.Trace.released(lease.Release(context.WithoutCancel(ctx))) }()
		g.o.Trace.failed(err)
		return nil, err
	}
	h.waited, h.refused = time.Since(began), refused
	return h, nil
}

// run does the work and releases the lease, however the work ends.
func (g *Guard) run(ctx context.Context, key string, h *Held, work func(context.Context, *Held) error) (err error) {
	ctx, nest := enclose(ctx, g.excludes, key)
	// The lease is kept by a context of its own, so that it lasts while work winds down whose caller has gone.
	keep, end := context.WithTimeoutCause(context.WithoutCancel(ctx), g.o.MaxHold, ErrLimit)
	held, stop := Hold(keep, nil, kept{h}, h.since, h.ttl, g.o.Trace)
	under, free := context.WithTimeoutCause(ctx, g.o.MaxHold, ErrLimit)
	under, cancel := context.WithCancelCause(under)
	unhook := context.AfterFunc(held, func() { cancel(context.Cause(held)) })

	began, err := time.Now(), errNoReturn
	defer func() {
		took := time.Since(began)
		unhook()
		stop()
		end()
		free()
		cancel(context.Canceled)
		nest.over.Store(true)
		g.took.add(took, err != nil)
		left := h.end()
		defer func() { g.o.Trace.released(h.lease.Release(context.WithoutCancel(ctx))) }() // whatever a hook does
		g.o.Trace.worked(took, err)
		g.o.Trace.left(left, h.ttl)
	}()
	g.o.Trace.acquired(h.waited)
	began = time.Now()
	return blame(under, work(under, h))
}
