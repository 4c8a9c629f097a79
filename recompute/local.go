package recompute

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Local is a [Locker] for one process, and a [Waker]. Its leases are [Fenced]: by the clock, so that the numbers of the process that
// comes after are higher still. The zero value is ready.
type Local struct {
	// Signal, if not nil, is told of each release and extension, under no lock of Local's.
	Signal func(key string, s Signal)

	waiters Waiters

	mu   sync.Mutex
	held map[string]*localLease
	last int64 // fence of the last grant, of any key
}

// Signal is what a lease has to say to those who wait for its key.
type Signal uint8

const (
	Released Signal = iota + 1 // the lease has ended; the key is free
	Renewed                    // the holder is alive
)

type localLease struct {
	local *Local
	key   string
	fence int64
	until time.Time // guarded by local.mu
}

// Acquire grants the lease of key if nobody holds it.
func (l *Local) Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error) {
	if err := checkTTL(ttl); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.held[key]; h != nil && time.Now().Before(h.until) {
		return nil, &HeldError{Left: time.Until(h.until)}
	}
	if l.held == nil {
		l.held = make(map[string]*localLease)
	}
	now := time.Now()
	l.last = max(l.last+1, now.UnixMicro())
	h := &localLease{local: l, key: key, fence: l.last, until: now.Add(ttl)}
	l.held[key] = h
	return h, nil
}

// Wake tells when a lease of key is released.
func (l *Local) Wake(_ context.Context, key string) (woken <-chan struct{}, stop func()) {
	return l.waiters.Wait(key)
}

// Fence returns the number of this grant.
func (h *localLease) Fence() int64 { return h.fence }

// Extend makes the lease last ttl from now.
func (h *localLease) Extend(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !h.locked(func() { h.until = time.Now().Add(ttl) }) {
		return ErrLost
	}
	h.local.signal(h.key, Renewed)
	return nil
}

// Release ends the lease. It works under an ended context too: the lease must not outlive its work.
func (h *localLease) Release(context.Context) error {
	if !h.locked(func() { delete(h.local.held, h.key) }) {
		return ErrLost
	}
	h.local.waiters.Wake(h.key)
	h.local.signal(h.key, Released)
	return nil
}

// locked runs change if the lease is still ours.
func (h *localLease) locked(change func()) bool {
	h.local.mu.Lock()
	defer h.local.mu.Unlock()
	if h.local.held[h.key] != h {
		return false
	}
	if !time.Now().Before(h.until) {
		delete(h.local.held, h.key) // it is over, and nobody else would clear it away
		return false
	}
	change()
	return true
}

func (l *Local) signal(key string, s Signal) {
	if l.Signal != nil {
		l.Signal(key, s)
	}
}

func checkTTL(ttl time.Duration) error {
	if ttl <= 0 {
		return fmt.Errorf("recompute: ttl of a lease is %v, must be positive", ttl)
	}
	return nil
}
