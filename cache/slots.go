package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// slots bound the computations that run at once in this process; nil slots bound nothing. Flights wait for one in turn.
type slots chan struct{}

func newSlots(most int) slots {
	if most == 0 {
		return nil
	}
	return make(slots, most)
}

// slot is held by a flight until it no longer computes, and by its computation until that returns, even if nobody
// waits for it any more.
type slot struct {
	of      slots
	holders atomic.Int32
}

func (s slots) take() *slot {
	t := &slot{of: s}
	t.holders.Store(1)
	return t
}

// hold counts one more holder in and returns how to count it out.
func (s *slot) hold() (leave func()) {
	if s == nil {
		return func() {}
	}
	s.holders.Add(1)
	return sync.OnceFunc(s.leave)
}

func (s *slot) leave() {
	if s != nil && s.holders.Add(-1) == 0 {
		<-s.of
	}
}

// holds is the key under which the context of a computation says that it has one of these slots. What it asks for may
// not wait for another one: they could all be taken by computations that do the same.
type holds struct{ of slots }

func (s slots) given(ctx context.Context) bool { return s == nil || ctx.Value(holds{s}) != nil }

func (s slots) give(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, holds{s}, true)
}

// waiver lets a flight do without a slot, since somebody waits for it who has one.
type waiver struct {
	once  sync.Once
	given chan struct{}
}

func (s slots) waiver() *waiver {
	if s == nil {
		return nil
	}
	return &waiver{given: make(chan struct{})}
}

// waive lets a flight do without a slot if ctx has one.
func (s slots) waive(ctx context.Context, w *waiver) {
	if w != nil && s.given(ctx) {
		w.once.Do(func() { close(w.given) })
	}
}

// enter waits for a slot. It returns false if there is a reason to look instead, or ctx has ended.
func (r *run[V]) enter(ctx context.Context, w *waiter, pause time.Duration) bool {
	if r.slots.given(ctx) {
		return true
	}
	select {
	case r.slots <- struct{}{}:
		r.slot = r.slots.take()
		return true
	default:
	}
	if r.spared {
		return false
	}
	poll := time.NewTimer(pause)
	defer poll.Stop()
	if w.board.hears() {
		poll.Stop()
	}
	for {
		select {
		case r.slots <- struct{}{}:
			r.slot = r.slots.take()
			return true
		case <-r.waiver.given:
			return true
		case <-w.wake:
			if w.due() {
				return false
			}
		case <-poll.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
