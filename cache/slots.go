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
// waits for it any more; and by the flights for what that asks for, which could wait for ever for another one: all could
// be taken by computations that do the same.
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

// join counts one more holder in, unless the slot is free by now.
func (s *slot) join() bool {
	for n := s.holders.Load(); n > 0; n = s.holders.Load() {
		if s.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (s *slot) leave() {
	if s != nil && s.holders.Add(-1) == 0 {
		<-s.of
	}
}

// holds is the key under which the context of a computation has its slot.
type holds struct{ of slots }

func (s *slot) give(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return context.WithValue(ctx, holds{s.of}, s)
}

// joined returns the slot of the computation that ctx is of, with one more holder; nil if it has none, or no longer.
func (s slots) joined(ctx context.Context) *slot {
	if t, ok := ctx.Value(holds{s}).(*slot); ok && t.join() {
		return t
	}
	return nil
}

// waiver lets a flight do without a slot of its own, since somebody waits for it who has one.
type waiver struct {
	given chan struct{} // closed once there is slot

	mu   sync.Mutex
	slot *slot
	over bool // the flight has ended
}

func (s slots) waiver() *waiver {
	if s == nil {
		return nil
	}
	return &waiver{given: make(chan struct{})}
}

// waive has a flight share the slot of ctx, if that has one.
func (s slots) waive(ctx context.Context, w *waiver) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.slot != nil {
		return
	}
	if w.slot = s.joined(ctx); w.slot != nil {
		close(w.given)
	}
}

// end gives back what was shared.
func (w *waiver) end() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.slot.leave()
}

// enter waits for a slot. It returns false if there is a reason to look instead, or ctx has ended.
func (r *run[V]) enter(ctx context.Context, w *waiter, pause time.Duration) bool {
	if r.slots == nil {
		return true
	}
	if !r.behind { // nobody waits for that
		if r.slot = r.slots.joined(ctx); r.slot != nil {
			return true
		}
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
			r.slot = r.waiver.slot
			return r.slot.join()
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
