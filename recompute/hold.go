package recompute

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// Hold keeps lease alive until stop is called or ctx ends: it extends by ttl each third of ttl, and after a failed
// extension again each twelfth. since is the time just before the lease was asked for.
//
// The context it returns is the one to work under. It ends with cause [ErrLost] before the lease does (a twentieth
// of ttl earlier), by a timer of its own that depends neither on the locker answering nor on any clock but the
// local monotonic one. Extensions end with ctx, so a bound on ctx bounds them.
func Hold(ctx context.Context, t *Tasks, lease Lease, since time.Time, ttl time.Duration, trace Trace) (work context.Context, stop func()) {
	work, cancel := context.WithCancelCause(ctx)
	lose := sync.OnceFunc(func() { // the timer and the keeper may notice together
		if work.Err() == nil {
			trace.lost()
		}
		cancel(ErrLost)
	})
	lost := time.AfterFunc(time.Until(since.Add(safe(ttl))), lose)
	k := keeper{lease: lease, ttl: ttl, trace: trace, lost: lost, lose: lose}
	if err := t.Go(func(context.Context) { k.keep(work, since) }); err != nil {
		cancel(err)
	}
	return work, func() {
		cancel(cmp.Or(context.Cause(ctx), context.Canceled)) // the parent may just be ending, and not have told us
		lost.Stop()
	}
}

// safe is how long a holder may rely on a lease of ttl.
func safe(ttl time.Duration) time.Duration { return ttl - ttl/20 }

type keeper struct {
	lease Lease
	ttl   time.Duration
	trace Trace
	lost  *time.Timer // fires lose when the lease can no longer be relied on
	lose  func()
}

func (k keeper) keep(work context.Context, since time.Time) {
	next := time.NewTimer(time.Until(since.Add(k.ttl / 3)))
	defer next.Stop()
	for {
		select {
		case <-work.Done():
			return
		case <-next.C:
		}
		asked := time.Now()
		err := k.lease.Extend(work, k.ttl)
		if work.Err() != nil {
			return // stopped meanwhile: what Extend says no longer matters
		}
		k.trace.extended(err)
		switch {
		case err == nil:
			k.lost.Reset(time.Until(asked.Add(safe(k.ttl))))
			next.Reset(time.Until(asked.Add(k.ttl / 3)))
		case errors.Is(err, ErrLost):
			k.lose()
			return
		default:
			next.Reset(k.ttl / 12)
		}
	}
}
