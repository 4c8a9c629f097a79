package recompute

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Flight is one run of work and those who wait for it.
type Flight[V any] struct {
	Note any // from the one who started it, for those who join

	group  *Group[V]
	key    string
	name   string // unique among the group's flights, so that singleflight never merges a flight with its successor
	run    func() (V, error)
	cancel context.CancelCauseFunc

	waiting int  // guarded by group.mu
	owed    bool // guarded by group.mu: goes on without anybody waiting
}

// takeOff starts the work. The caller holds group.mu and has entered the flight into the group's tasks.
func (f *Flight[V]) takeOff(ctx context.Context, work Work[V]) {
	g := f.group
	ctx, nest := enclose(ctx, g, f.key)
	ctx, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), g.limit, ErrLimit)
	ctx, f.cancel = context.WithCancelCause(ctx)
	unhook := context.AfterFunc(g.tasks.ctx, func() { f.cancel(ErrClosed) })
	f.run = sync.OnceValues(func() (V, error) {
		defer g.tasks.leave()
		defer stop()
		defer f.cancel(nil)
		defer unhook()
		defer f.seal()
		defer nest.over.Store(true)
		v, err := Call(ctx, g.tasks, func(ctx context.Context) (V, error) { return work(ctx, f.seal) })
		return v, blame(ctx, err)
	})
	g.merged.DoChan(f.name, f.once)
}

// blame names the reason for which we ended the work: the work itself will only speak of its context.
func blame(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil || cause == nil || errors.Is(err, cause):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

func (f *Flight[V]) once() (any, error) { return f.run() }

// Wait returns the result of the flight, or the context's error as soon as ctx ends: nobody is held by another's
// patience. A caller whose deadline passes still wants the value, so the flight goes on; when all callers have
// cancelled, and nothing else is owed, the flight ends with cause [ErrAbandoned]. A caller whose ctx belongs to a
// flight for the same key would wait for itself and gets [ErrRecursive].
//
// Between Start or Find and Wait all others may have cancelled. Then the result is ErrAbandoned although ctx lives, and
// the caller asks again.
func (f *Flight[V]) Wait(ctx context.Context) (V, error) {
	if inside(ctx, f.group, f.key) {
		var zero V
		return zero, ErrRecursive
	}
	f.board()
	return f.wait(ctx)
}

// wait is for one who is aboard.
func (f *Flight[V]) wait(ctx context.Context) (V, error) {
	// Late callers may find the flight over; run is remembered, so that they get its result all the same.
	done := f.group.merged.DoChan(f.name, f.once)
	select {
	case r := <-done:
		f.leave(nil)
		value, _ := r.Val.(V) // not so only if V is an interface and the value nil
		return value, r.Err
	case <-ctx.Done():
		f.leave(ctx.Err())
		var zero V
		return zero, ctx.Err()
	}
}

func (f *Flight[V]) board() {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.waiting++
}

func (f *Flight[V]) leave(why error) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.waiting--
	if errors.Is(why, context.DeadlineExceeded) {
		f.owed = true
	}
	if why != nil && f.waiting == 0 && !f.owed {
		f.drop()
		f.cancel(ErrAbandoned)
	}
}

// Owed says whether the flight goes on even if nobody waits for it.
func (f *Flight[V]) Owed() bool {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	return f.owed
}

// seal closes the flight to newcomers.
func (f *Flight[V]) seal() {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.drop()
}

func (f *Flight[V]) drop() {
	if f.group.flights[f.key] == f {
		delete(f.group.flights, f.key)
	}
}
