package cachetest

import (
	"context"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// Locker returns the other store's locker, with its own share of bad luck.
func (c *Chaos) Locker() recompute.Locker {
	if e, ok := c.store.(cache.Elector); ok {
		return c.Around(e.Locker())
	}
	return c.Around(&c.local)
}

// Around returns a locker that does to l what the options say.
func (c *Chaos) Around(l recompute.Locker) recompute.Locker { return chaosLocker{c, l} }

type chaosLocker struct {
	chaos  *Chaos
	locker recompute.Locker
}

type chaosLease struct {
	chaos *Chaos
	lease recompute.Lease
}

// Acquire asks for the lease. One whose grant was lost on its way is taken back, as the contract demands of a locker.
func (l chaosLocker) Acquire(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	f := l.chaos.fate(OnAcquire)
	var granted recompute.Lease
	_, err := through(ctx, l.chaos, f, func() (_ struct{}, err error) {
		granted, err = l.locker.Acquire(ctx, key, ttl)
		return struct{}{}, err
	})
	switch {
	case err != nil && granted != nil:
		_ = granted.Release(context.WithoutCancel(ctx)) // or it ends by itself
		return nil, err
	case err != nil:
		return nil, err
	}
	l.chaos.steal(ctx, f, granted)
	return chaosLease{l.chaos, granted}, nil
}

// Extend makes the lease last ttl from now.
func (l chaosLease) Extend(ctx context.Context, ttl time.Duration) error {
	f := l.chaos.fate(OnExtend)
	_, err := through(ctx, l.chaos, f, func() (struct{}, error) {
		err := l.lease.Extend(ctx, ttl)
		if err == nil {
			l.chaos.steal(ctx, f, l.lease)
		}
		return struct{}{}, err
	})
	return err
}

// Release ends the lease.
func (l chaosLease) Release(ctx context.Context) error {
	return l.chaos.do(ctx, OnRelease, func() error { return l.lease.Release(ctx) })
}

// steal ends a lease behind its holder's back: the next holder has it by right, and this one finds out when it asks.
func (c *Chaos) steal(ctx context.Context, f fate, lease recompute.Lease) {
	if f.stolen && lease.Release(context.WithoutCancel(ctx)) == nil {
		_ = c.note(Stolen, f.step)
	}
}
