package recompute

import (
	"context"
	"sync"
	"time"
)

// Cut returns a context like ctx that cut frees from it: from then on it ends only when t is closed. cut says whether
// that worked: not when the context has ended before. Call end when nothing runs under the context any more.
func Cut(ctx context.Context, t *Tasks) (like context.Context, cut func() bool, end func()) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &tied{Context: inner, cancel: cancel, to: ctx}
	c.untie = context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return c, func() bool { return c.cut(t) }, c.end
}

// tied is a context that ends with another, for as long as it is tied to it.
type tied struct {
	context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	to    context.Context // nil once cut
	over  bool
	untie func() bool
}

func (c *tied) cut(t *Tasks) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.to == nil:
		return true
	case c.over || !c.untie():
		return false
	}
	c.to = nil
	c.untie = context.AfterFunc(t.context(), func() { c.cancel(ErrClosed) })
	return true
}

func (c *tied) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.untie()
	c.cancel(context.Canceled)
}

// Deadline returns the time at which the context will end, if that is known.
func (c *tied) Deadline() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.to == nil {
		return time.Time{}, false
	}
	return c.to.Deadline()
}
