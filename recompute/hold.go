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
// local monotonic one. Extensions end with ctx, so a bound on ctx bounds them. They are counted in t; once that is closed, there are
// none, and the work ends with cause [ErrClosed] when the first would be due.
func Hold(ctx context.Context, t *Tasks, lease Lease, since time.Time, ttl time.Duration, trace Trace) (work context.Context, stop func()) {
	work, cancel := context.WithCancelCause(ctx)
	k := &keeper{tasks: t, lease: lease, ttl: ttl, trace: trace, work: work, cancel: cancel}
	k.mu.Lock() // a timer may be due at once
	defer k.mu.Unlock()
	k.lost = time.AfterFunc(time.Until(since.Add(safe(ttl))), k.expire)
	k.due = time.AfterFunc(time.Until(since.Add(ttl/3)), k.extend)
	return work, func() {
		cancel(cmp.Or(context.Cause(ctx), context.Canceled)) // the parent may just be ending, and not have told us
		k.rest()
	}
}

// safe is how long a holder may rely on a lease of ttl.
func safe(ttl time.Duration) time.Duration { return ttl - ttl/20 }

// keeper has no goroutine while there is nothing to do: most leases end before the first extension.
type keeper struct {
	tasks  *Tasks
	lease  Lease
	ttl    time.Duration
	trace  Trace
	work   context.Context
	cancel context.CancelCauseFunc
	told   sync.Once // of the loss, which the timer and an extension may notice together

	mu   sync.Mutex
	lost *time.Timer // calls expire when the lease can no longer be relied on
	due  *time.Timer // calls extend; stopped while that runs
}

func (k *keeper) extend() {
	if !k.tasks.enter() {
		k.cancel(ErrClosed)
		return
	}
	k.tasks.run(func(context.Context) {
		if k.work.Err() != nil {
			return
		}
		asked := time.Now()
		err := k.lease.Extend(k.work, k.ttl)
		if k.work.Err() != nil {
			return // stopped meanwhile: what Extend says no longer matters
		}
		k.trace.extended(err)
		switch {
		case err == nil:
			k.again(asked, k.ttl/3, safe(k.ttl))
		case errors.Is(err, ErrLost):
			k.lose()
		default:
			k.again(time.Now(), k.ttl/12, 0)
		}
	})
}

// again has the next extension asked for after due, and the lease relied on for lost if that is not 0, both from a point in time.
func (k *keeper) again(from time.Time, due, lost time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.work.Err() != nil {
		return
	}
	if lost > 0 {
		k.lost.Reset(time.Until(from.Add(lost)))
	}
	k.due.Reset(time.Until(from.Add(due)))
}

// expire loses the lease. A hook that panics ends nothing else.
func (k *keeper) expire() {
	var uncounted *Tasks
	uncounted.run(func(context.Context) { k.lose() })
}

func (k *keeper) lose() {
	k.told.Do(func() {
		defer k.cancel(ErrLost) // whatever the hook does
		if k.work.Err() == nil {
			k.trace.lost()
		}
	})
	k.rest()
}

// rest stops the timers, once the work has ended.
func (k *keeper) rest() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lost.Stop()
	k.due.Stop()
}
