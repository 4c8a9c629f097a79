package recomputetest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// asking is what a locker does when it is asked for a lease.
type asking = func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error)

// faulty is a locker with a fault that has been seen in the field.
type faulty struct {
	recompute.Locker
	acquire asking
	extend  func(h *faultyLease, ctx context.Context, ttl time.Duration) error
	release func(h *faultyLease, ctx context.Context) error
}

type faultyLease struct {
	recompute.Lease
	faulty
	key string
}

func (f faulty) Acquire(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	ask := recompute.Locker.Acquire
	if f.acquire != nil {
		ask = f.acquire
	}
	lease, err := ask(f.Locker, ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	return &faultyLease{lease, f, key}, nil
}

func (h *faultyLease) Extend(ctx context.Context, ttl time.Duration) error {
	if h.extend != nil {
		return h.extend(h, ctx, ttl)
	}
	return h.Lease.Extend(ctx, ttl)
}

func (h *faultyLease) Release(ctx context.Context) error {
	if h.release != nil {
		return h.release(h, ctx)
	}
	return h.Lease.Release(ctx)
}

// take makes the lease of key ours, whoever has it.
func (h *faultyLease) take(ttl time.Duration) error {
	*h.Locker.(*recompute.Local) = recompute.Local{}
	lease, err := h.Locker.Acquire(context.Background(), h.key, ttl)
	h.Lease = lease
	return err
}

// faults are the lockers, each with a property that must tell it from a good one.
var faults = map[string]struct {
	faulty
	fails string
}{
	"waits for the holder": {fails: "a held lease is refused at once", faulty: faulty{
		acquire: func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
			lease, err := l.Acquire(ctx, key, ttl)
			for range 500 {
				if !errors.Is(err, recompute.ErrHeld) {
					break
				}
				time.Sleep(10 * time.Millisecond)
				lease, err = l.Acquire(ctx, key, ttl)
			}
			return lease, err
		}}},
	"releases nothing": {fails: "a released lease is free", faulty: faulty{
		release: func(*faultyLease, context.Context) error { return nil }}},
	"releases silently what it has not": {fails: "a lease can be released once", faulty: faulty{
		release: func(h *faultyLease, ctx context.Context) error { _ = h.Lease.Release(ctx); return nil }}},
	"holds for ever": {fails: "a lease ends by itself", faulty: faulty{
		acquire: func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
			return l.Acquire(ctx, key, ttl*1000)
		}}},
	"holds too briefly": {fails: "a lease ends by itself", faulty: faulty{
		acquire: func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
			return l.Acquire(ctx, key, ttl/2)
		}}},
	"extends nothing": {fails: "an extended lease outlives its first ttl", faulty: faulty{
		extend: func(*faultyLease, context.Context, time.Duration) error { return nil }}},
	"adds up extensions": {fails: "an extension counts from now", faulty: faulty{
		extend: func(h *faultyLease, ctx context.Context, ttl time.Duration) error {
			return h.Lease.Extend(ctx, ttl+time.Minute)
		}}},
	"extends what was released": {fails: "a released lease can not be extended", faulty: faulty{
		extend: func(h *faultyLease, _ context.Context, ttl time.Duration) error { return h.take(ttl) }}},
	"extends what has expired": {fails: "an expired lease can neither be extended nor released", faulty: faulty{
		extend: func(h *faultyLease, _ context.Context, ttl time.Duration) error { return h.take(ttl) }}},
	"releases whatever is there": {fails: "a lost lease can neither extend nor release its successor's", faulty: faulty{
		release: func(h *faultyLease, ctx context.Context) error {
			if h.Lease.Release(ctx) == nil {
				return nil
			}
			*h.Locker.(*recompute.Local) = recompute.Local{}
			return recompute.ErrLost
		}}},
	"takes any ttl": {fails: "a ttl that is not positive is refused and changes nothing", faulty: faulty{
		acquire: func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
			return l.Acquire(ctx, key, max(ttl, time.Nanosecond))
		}}},
	"loses the lease with a bad extension": {fails: "a ttl that is not positive is refused and changes nothing", faulty: faulty{
		extend: func(h *faultyLease, ctx context.Context, ttl time.Duration) error {
			if ttl <= 0 {
				_ = h.Lease.Release(ctx)
			}
			return h.Lease.Extend(ctx, ttl)
		}}},
	"leaves a lease under an ended context": {fails: "an ended context is refused with its error and leaves no lease", faulty: faulty{
		acquire: func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
			lease, err := l.Acquire(context.WithoutCancel(ctx), key, ttl)
			return lease, errors.Join(err, ctx.Err())
		}}},
	"releases only in good times": {fails: "a lease is released although the context of its work has ended", faulty: faulty{
		release: func(h *faultyLease, ctx context.Context) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return h.Lease.Release(ctx)
		}}},
	"asks, then takes": {fails: "of many who ask together one is granted", faulty: faulty{
		acquire: func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
			local := l.(*twoSteps)
			if local.held(key) {
				return nil, recompute.ErrHeld
			}
			time.Sleep(time.Millisecond)
			return local.set(ctx, key, ttl)
		}}},
	"grants now and then what is held": {fails: "there is never more than one holder", faulty: faulty{
		acquire: func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
			lease, err := l.Acquire(ctx, key, ttl)
			if errors.Is(err, recompute.ErrHeld) && refusals.Add(1)%5 == 0 {
				return new(recompute.Local).Acquire(ctx, key, ttl)
			}
			return lease, err
		}}},
	"has one lock for all keys": {fails: "keys are independent, whatever they hold", faulty: faulty{
		acquire: func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
			return l.Acquire(ctx, "lock", ttl)
		}}},
	"trims keys": {fails: "keys are independent, whatever they hold", faulty: faulty{
		acquire: func(l recompute.Locker, ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
			return l.Acquire(ctx, string([]rune(key)), ttl)
		}}},
}

var refusals atomic.Int64

// twoSteps looks and takes in two steps, as GET and SET do.
type twoSteps struct {
	recompute.Local
	mu    sync.Mutex
	taken map[string]bool
}

func (l *twoSteps) held(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken[key]
}

func (l *twoSteps) set(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = map[string]bool{key: true}
	return new(recompute.Local).Acquire(ctx, key, ttl)
}
