package recompute

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Tasks starts the goroutines of one owner and ends them together. Create one with [NewTasks]. A nil Tasks starts
// goroutines without counting them: for what is bounded in time by itself and has no owner to outlive.
type Tasks struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	running int
	calls   map[*call]struct{} // the calls under way, for Oldest
	idle    chan struct{}      // not nil once closing; closed when nothing runs any more
}

type call struct{ began time.Time }

// NewTasks returns an owner of goroutines that lives until Close.
func NewTasks() *Tasks {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Tasks{ctx: ctx, cancel: cancel, calls: make(map[*call]struct{})}
}

// Go runs f on a goroutine whose context ends, with cause [ErrClosed], when the owner is closed. After Close it
// starts nothing and returns ErrClosed. A panic in f ends f only.
func (t *Tasks) Go(f func(ctx context.Context)) error {
	if !t.enter() {
		return ErrClosed
	}
	go t.run(f)
	return nil
}

// run calls f on the goroutine that was counted in.
func (t *Tasks) run(f func(ctx context.Context)) {
	defer t.leave()
	defer func() { _ = recover() }()
	f(t.context())
}

// Oldest returns how long the oldest [Call] has been running, 0 when there is none; one that called [Overlook] doesn't
// count. A value far above the limit of the work means that some work ignores its context.
func (t *Tasks) Oldest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var oldest time.Duration
	for c := range t.calls {
		oldest = max(oldest, time.Since(c.began))
	}
	return oldest
}

// Close refuses new goroutines, ends the context of those that run and waits for them, but no longer than patience;
// then it returns an error that says how many are left. Closing again is harmless.
func (t *Tasks) Close(patience time.Duration) error {
	t.mu.Lock()
	if t.idle == nil {
		t.idle = make(chan struct{})
		if t.running == 0 {
			close(t.idle)
		}
	}
	idle := t.idle
	t.mu.Unlock()
	t.cancel(ErrClosed)

	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-timer.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == 0 {
		return nil
	}
	return fmt.Errorf("recompute: %d goroutines still run %v after close: work that ignores its context", t.running, patience)
}

func (t *Tasks) context() context.Context {
	if t == nil {
		return context.Background()
	}
	return t.ctx
}

// enter counts a goroutine in. Check and count are one step: once closing has begun, the count only falls.
func (t *Tasks) enter() bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle != nil {
		return false
	}
	t.running++
	return true
}

func (t *Tasks) leave() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.running == 0 && t.idle != nil {
		close(t.idle)
	}
}

// enterCall counts in a goroutine whose age matters. Unlike enter it works while closing, as long as something
// still runs: a flight that is winding down may still call.
func (t *Tasks) enterCall() (*call, bool) {
	if t == nil {
		return nil, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle != nil && t.running == 0 {
		return nil, false
	}
	t.running++
	c := &call{began: time.Now()}
	t.calls[c] = struct{}{}
	return c, true
}

func (t *Tasks) leaveCall(c *call) {
	t.overlook(c)
	t.leave()
}

// overlook takes a call out of those whose age matters.
func (t *Tasks) overlook(c *call) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls, c)
}
