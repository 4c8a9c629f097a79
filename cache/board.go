package cache

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// board passes events to those who wait for a name.
type board struct {
	mu      sync.Mutex
	on      bool // events arrive
	waiting map[string]map[*waiter]struct{}
}

// waiter is one flight that waits for another process's value.
type waiter struct {
	board *board
	name  string
	lease time.Duration
	wake  chan struct{} // holds a token when there is news

	end   *Event    // guarded by board.mu: how a computation ended, if that was not seen yet
	heard time.Time // guarded by board.mu: when end came
	look  bool      // guarded by board.mu: there is a reason to look
	left  any       // guarded by board.mu: an answer that others have left, see leave
}

func (b *board) enter(name string, lease time.Duration) *waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &waiter{board: b, name: name, lease: lease, wake: make(chan struct{}, 1)}
	if b.waiting == nil {
		b.waiting = make(map[string]map[*waiter]struct{})
	}
	if b.waiting[name] == nil {
		b.waiting[name] = make(map[*waiter]struct{})
	}
	b.waiting[name][w] = struct{}{}
	return w
}

func (b *board) exit(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting[w.name], w)
	if len(b.waiting[w.name]) == 0 {
		delete(b.waiting, w.name)
	}
}

// post hands an event to those whom it concerns.
func (b *board) post(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e.Kind {
	case Connected, Disconnected:
		b.on = e.Kind == Connected
		for _, waiters := range b.waiting {
			for w := range waiters { // anything may have been missed
				w.post(e)
			}
		}
	default:
		for w := range b.waiting[e.Key.Name] {
			w.post(e)
		}
	}
}

// leave hands an answer of this process to those who wait for name: one that the store did not take, so that nobody will
// announce it, but that is good enough for whoever asked before it was begun.
func (b *board) leave(name string, a any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.waiting[name] {
		w.left, w.look = a, true
		w.nudge()
	}
}

// found returns the last answer that was left, nil if there was none.
func (w *waiter) found() any {
	w.board.mu.Lock()
	defer w.board.mu.Unlock()
	return w.left
}

// post notes an event; the board is locked.
func (w *waiter) post(e Event) {
	if e.Kind == Published || e.Kind == Failed {
		w.end, w.heard = &e, time.Now()
	}
	if e.Kind != Renewed {
		w.look = true
	}
	w.nudge()
}

// nudge wakes the waiter; the board is locked.
func (w *waiter) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// blind are the pauses of a flight to which nothing is told.
var blind = recompute.Backoff{Min: 20 * time.Millisecond, Max: 500 * time.Millisecond, Jitter: 0.5}

// wait returns when there is a reason to look, with the event that ended a computation if there is one; also when ctx
// ends. While events arrive, silence is a reason only when the lease must have run out, which has left to go and is
// renewed for as long as its holder lives. Else it is one after pause.
func (w *waiter) wait(ctx context.Context, pause, left time.Duration) (Event, bool) {
	for {
		if w.board.hears() {
			pause = left + rand.N(w.lease/20)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return Event{}, false
		case <-timer.C:
			return w.take()
		case <-w.wake:
			timer.Stop()
			if w.due() {
				return w.take()
			}
			left = w.lease // renewed
		}
	}
}

// hears says whether events arrive.
func (b *board) hears() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.on
}

func (w *waiter) due() bool {
	w.board.mu.Lock()
	defer w.board.mu.Unlock()
	return w.look
}

func (w *waiter) take() (Event, bool) {
	w.board.mu.Lock()
	defer w.board.mu.Unlock()
	w.look = false
	select {
	case <-w.wake: // what it was for is taken
	default:
	}
	if e := w.end; e != nil {
		w.end = nil
		e.Entry.Age += time.Since(w.heard)
		return *e, true
	}
	return Event{}, false
}
