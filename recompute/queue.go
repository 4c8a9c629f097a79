package recompute

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// queue is the place of one who waits for a key, once it has joined.
type queue struct {
	guard *Guard
	key   string
	woken <-chan struct{}
	stop  func() // nil: has not joined
}

// join has us woken where that can be, and says whether we had not joined before.
func (q *queue) join(ctx context.Context) bool {
	waker, wakes := q.guard.locker.(Waker)
	if !wakes || q.stop != nil {
		return false
	}
	q.woken, q.stop = waker.Wake(ctx, q.key)
	return true
}

func (q *queue) leave() {
	if q.stop != nil {
		q.stop()
	}
}

// rest waits for a pause or a reason to ask sooner, and says whether ctx still lives.
func (q *queue) rest(ctx context.Context, pause time.Duration, answer error) bool {
	if q.woken != nil && q.guard.patient {
		pause = min(5*pause, max(pause, time.Second)) // only to make good what was lost
	}
	if h, ok := errors.AsType[*HeldError](answer); ok { // it may end by itself before. Not everybody asks at the same moment.
		pause = min(pause, max(h.Left, 0)+time.Millisecond+rand.N(20*time.Millisecond))
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-q.woken:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
