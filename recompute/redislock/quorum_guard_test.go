package redislock_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

// The pause between questions is far longer than the test, so only what the servers announce can wake.
func TestOneWhoWaitsForALeaseOfAQuorumIsWokenByItsRelease(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	holder, q := e.open(t, patience), e.open(t, patience)
	e.learned(t, holder)
	o := recompute.GuardOptions{TTL: 20 * time.Second, Wait: 20 * time.Second, Retry: recompute.Backoff{Min: 30 * time.Second, Max: 30 * time.Second, Jitter: 0.1}}
	waiter := guard(t, q, o)
	var took []time.Duration
	for range 20 {
		lease := acquire(t, holder, "key", long)
		began := make(chan time.Time, 1)
		done := make(chan error, 1)
		go func() {
			done <- waiter.Do(t.Context(), "key", func(context.Context, *recompute.Held) error {
				began <- time.Now()
				return nil
			})
		}()
		time.Sleep(30 * time.Millisecond) // it asks, and waits
		released := time.Now()
		require.NoError(t, lease.Release(t.Context()))
		require.NoError(t, <-done)
		took = append(took, (<-began).Sub(released))
	}
	slices.Sort(took)
	t.Logf("median %v, worst %v", took[len(took)/2], took[len(took)-1])
	assert.Less(t, took[len(took)/2], time.Second)
}

// Each server announces the release, and who is woken by the first finds the others still held.
func TestAReleaseOfAQuorumWakesOneWhoWaitsOnce(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	holder, q := e.open(t, patience), e.open(t, patience)
	e.learned(t, holder)
	lease := acquire(t, holder, "key", long)
	woken, stop := q.Wake(t.Context(), "key")
	defer stop()
	count := func(d time.Duration) (times int) {
		for over := time.After(d); ; {
			select {
			case <-woken:
				times++
			case <-over:
				return times
			}
		}
	}
	require.Positive(t, count(time.Second), "when it can hear each server")
	for range 5 {
		require.NoError(t, lease.Release(t.Context()))
		assert.Equal(t, 1, count(400*time.Millisecond))
		lease = acquire(t, holder, "key", long)
	}
}

// Servers announce a release while who waited for it leaves.
func TestAQuorumRemembersNothingOfLeasesForWhichNobodyWaits(t *testing.T) {
	t.Parallel()
	q := startEnsemble(t, 3).open(t, patience)
	for i := range 5000 {
		name := strconv.Itoa(i)
		_, stop := q.Wake(t.Context(), name)
		var all sync.WaitGroup
		for server := range 3 {
			all.Go(func() { q.Announce(server, name) })
		}
		all.Go(stop)
		all.Wait()
	}
	assert.Zero(t, q.Announced())
}

func TestWorkUnderALeaseOfAQuorumGoesOnWhileAMajorityDoes(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	g := guard(t, q, recompute.GuardOptions{TTL: 900 * time.Millisecond})
	require.NoError(t, g.Do(t.Context(), "key", func(ctx context.Context, h *recompute.Held) error {
		_, fenced := h.Fence()
		assert.True(t, fenced)
		require.NoError(t, e.servers[0].Kill())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(2 * time.Second):
			return nil
		}
	}))
	require.ErrorIs(t, g.Do(t.Context(), "key", func(ctx context.Context, _ *recompute.Held) error {
		require.NoError(t, e.servers[1].Kill())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Second):
			return nil
		}
	}), recompute.ErrLost)
}
