// Package recomputetest is the contract of recompute's interfaces, as a test anyone can run on an implementation of their own.
package recomputetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

const (
	brief = 300 * time.Millisecond // a ttl that a test waits for
	long  = time.Minute            // a ttl that it doesn't
	slack = 100 * time.Millisecond // how much later than at its end a lease may be free
	atOne = 2 * time.Second        // "at once", for a server on a busy machine
)

// TestLocker runs the contract of [recompute.Locker], one property at a time, each on a locker that open returns and on keys of its
// own. Several lockers that open returns may share a server and a namespace, as long as nobody else uses it.
//
// within runs a property. Give testing/synctest.Test for a locker that lives in this process: then the suite takes no time. For one
// that speaks to a server give nil: the properties then run in parallel, in real time, with leases of 300 ms.
func TestLocker(t *testing.T, within func(*testing.T, func(*testing.T)), open func(*testing.T) recompute.Locker) {
	for _, p := range properties {
		t.Run(p.says, func(t *testing.T) {
			test := func(t *testing.T) { p.holds(t, subject{t, open(t)}) }
			if within != nil {
				within(t, test)
				return
			}
			t.Parallel()
			test(t)
		})
	}
}

// properties are the contract.
var properties = []struct {
	says  string
	holds func(*testing.T, subject)
}{
	{"a held lease is refused at once", refusedAtOnce},
	{"a released lease is free", releasedIsFree},
	{"a lease can be released once", releasedOnce},
	{"a lease ends by itself", endsByItself},
	{"an extended lease outlives its first ttl", outlivesFirstTTL},
	{"an extension counts from now", extensionCountsFromNow},
	{"a released lease can not be extended", releasedStaysReleased},
	{"an expired lease can neither be extended nor released", expiredStaysExpired},
	{"a lost lease can neither extend nor release its successor's", successorIsSafe},
	{"a ttl that is not positive is refused and changes nothing", positiveTTL},
	{"an ended context is refused with its error and leaves no lease", endedContext},
	{"a lease is released although the context of its work has ended", releasedUnderEndedContext},
	{"of many who ask together one is granted", oneOfMany},
	{"there is never more than one holder", neverTwo},
	{"keys are independent, whatever they hold", independentKeys},
}

// subject is the locker under test with what is asked of it again and again.
type subject struct {
	t *testing.T
	recompute.Locker
}

// acquire gets the lease of key.
func (s subject) acquire(key string, ttl time.Duration) recompute.Lease {
	s.t.Helper()
	lease, err := s.Acquire(s.t.Context(), key, ttl)
	require.NoError(s.t, err, "Acquire %q", key)
	require.NotNil(s.t, lease, "a lease comes with no error")
	return lease
}

// refused asserts that somebody else holds the lease of key.
func (s subject) refused(key string) {
	s.t.Helper()
	lease, err := s.Acquire(s.t.Context(), key, long)
	require.ErrorIs(s.t, err, recompute.ErrHeld, "Acquire %q", key)
	require.Nil(s.t, lease, "an error comes with no lease")
	if h, ok := errors.AsType[*recompute.HeldError](err); ok {
		assert.Greater(s.t, h.Left, time.Duration(0), "the time that it is held for")
		assert.LessOrEqual(s.t, h.Left, long)
	}
}

// free asserts that nobody holds the lease of key.
func (s subject) free(key string) {
	s.t.Helper()
	require.NoError(s.t, s.acquire(key, long).Release(s.t.Context()))
}

// freed waits until nobody holds the lease of key any more, and returns the lease that it got by asking.
func (s subject) freed(key string, ttl, patience time.Duration) recompute.Lease {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		late := time.Now().After(deadline)
		lease, err := s.Acquire(s.t.Context(), key, ttl)
		if err == nil {
			return lease
		}
		require.ErrorIs(s.t, err, recompute.ErrHeld)
		if late {
			require.FailNow(s.t, "the lease should have ended", "%q is held after %v", key, patience)
		}
	}
}

func refusedAtOnce(t *testing.T, s subject) {
	lease := s.acquire("key", long)
	began := time.Now()
	s.refused("key")
	assert.Less(t, time.Since(began), atOne)
	require.NoError(t, lease.Release(t.Context()), "and the holder keeps it")
}

func releasedIsFree(t *testing.T, s subject) {
	for range 3 {
		require.NoError(t, s.acquire("key", long).Release(t.Context()))
	}
}

func releasedOnce(t *testing.T, s subject) {
	lease := s.acquire("key", long)
	require.NoError(t, lease.Release(t.Context()))
	require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
	successor := s.acquire("key", long)
	require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
	s.refused("key")
	require.NoError(t, successor.Release(t.Context()))
}

func endsByItself(t *testing.T, s subject) {
	began := time.Now()
	s.acquire("key", brief) // and nobody releases it
	successor := s.freed("key", long, brief+slack)
	assert.GreaterOrEqual(t, time.Since(began), brief, "and not before its time")
	require.NoError(t, successor.Release(t.Context()))
}

func outlivesFirstTTL(t *testing.T, s subject) {
	lease := s.acquire("key", brief)
	require.NoError(t, lease.Extend(t.Context(), long))
	time.Sleep(brief + slack)
	s.refused("key")
	require.NoError(t, lease.Release(t.Context()))
	s.free("key")
}

func extensionCountsFromNow(t *testing.T, s subject) {
	lease := s.acquire("key", long)
	began := time.Now()
	require.NoError(t, lease.Extend(t.Context(), brief))
	successor := s.freed("key", long, brief+slack)
	assert.GreaterOrEqual(t, time.Since(began), brief)
	require.NoError(t, successor.Release(t.Context()))
}

func releasedStaysReleased(t *testing.T, s subject) {
	lease := s.acquire("key", long)
	require.NoError(t, lease.Release(t.Context()))
	require.ErrorIs(t, lease.Extend(t.Context(), long), recompute.ErrLost)
	s.free("key")
}

func expiredStaysExpired(t *testing.T, s subject) {
	lease := s.acquire("key", brief)
	time.Sleep(brief + slack)
	require.ErrorIs(t, lease.Extend(t.Context(), long), recompute.ErrLost)
	s.free("key")
	require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
}

func successorIsSafe(t *testing.T, s subject) {
	lost := s.acquire("key", brief)
	time.Sleep(brief + slack)
	began := time.Now()
	successor := s.acquire("key", brief)
	require.ErrorIs(t, lost.Extend(t.Context(), long), recompute.ErrLost)
	require.ErrorIs(t, lost.Release(t.Context()), recompute.ErrLost)
	last := s.freed("key", long, brief+slack)
	assert.GreaterOrEqual(t, time.Since(began), brief, "it wasn't released")
	require.ErrorIs(t, successor.Release(t.Context()), recompute.ErrLost)
	require.NoError(t, last.Release(t.Context()))
}

func positiveTTL(t *testing.T, s subject) {
	for _, ttl := range []time.Duration{0, -1, -time.Second, -1 << 63} {
		lease, err := s.Acquire(t.Context(), "key", ttl)
		require.Error(t, err, "Acquire with ttl %v", ttl)
		require.NotErrorIs(t, err, recompute.ErrHeld)
		require.Nil(t, lease)
		s.free("key")

		lease = s.acquire("key", long)
		err = lease.Extend(t.Context(), ttl)
		require.Error(t, err, "Extend by %v", ttl)
		require.NotErrorIs(t, err, recompute.ErrLost)
		s.refused("key")
		require.NoError(t, lease.Release(t.Context()))
	}
}

func endedContext(t *testing.T, s subject) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{cancelled, expired} {
		lease, err := s.Acquire(ctx, "key", long)
		require.ErrorIs(t, err, ctx.Err())
		require.Nil(t, lease)
		require.NoError(t, s.freed("key", long, time.Second).Release(t.Context()))
	}
}

func releasedUnderEndedContext(t *testing.T, s subject) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the work has ended"))
	require.NoError(t, s.acquire("key", long).Release(ended))
	s.free("key")
}
