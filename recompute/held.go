package recompute

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Held is what work under a [Guard] knows of its lease. It may be used by several goroutines, and after the work.
type Held struct {
	lease   Lease
	ttl     time.Duration
	since   time.Time     // just before the lease was asked for
	waited  time.Duration // until it was granted
	refused int           // how often another had it

	mu       sync.Mutex
	until    time.Time // the lease may be relied on so long
	over     bool      // the work has returned
	extended int
}

func newHeld(lease Lease, since time.Time, ttl time.Duration) *Held {
	return &Held{lease: lease, ttl: ttl, since: since, until: since.Add(safe(ttl))}
}

// Fence returns the number of the lease, if it has one: see [Fenced].
func (h *Held) Fence() (n int64, ok bool) {
	if f, ok := h.lease.(Fenced); ok {
		return f.Fence(), true
	}
	return 0, false
}

// Left returns how long the lease may be relied on if it is not extended any more, 0 once it may no longer be. It goes by whichever
// clock says less: the monotonic one stands still while a machine is suspended, and the other can be set. It asks nobody, so a lease
// that vanished from its server has time left until the next extension finds out.
func (h *Held) Left() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return 0
	}
	return max(left(h.until, time.Now()), 0)
}

// left goes by both clocks.
func left(until, now time.Time) time.Duration {
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

// TTL returns the time for which the lease was asked, and is extended.
func (h *Held) TTL() time.Duration { return h.ttl }

// Extensions returns how often the lease has been extended.
func (h *Held) Extensions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.extended
}

// Waited returns how long it took to get the lease, and how often another had it meanwhile.
func (h *Held) Waited() (took time.Duration, refused int) { return h.waited, h.refused }

// end says that nobody relies on the lease any more, and returns how long one could have.
func (h *Held) end() time.Duration {
	left := h.Left()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	return left
}

// kept is the lease as [Hold] sees it.
type kept struct{ *Held }

func (k kept) Extend(ctx context.Context, ttl time.Duration) error {
	asked := time.Now()
	err := k.lease.Extend(ctx, ttl)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err == nil:
		k.until = asked.Add(safe(ttl))
		k.extended++
	case errors.Is(err, ErrLost):
		k.until = asked
	}
	return err
}

func (k kept) Release(ctx context.Context) error { return k.lease.Release(ctx) }
