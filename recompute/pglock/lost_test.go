package pglock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/pglock"
	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgtest"
)

// trouble is a locker behind a gate, and one that goes past it.
type trouble struct {
	gate            *pgtest.Gate
	inside, outside *pglock.Locker
}

func through(t testing.TB, change ...func(*pglock.Options)) trouble {
	gate := pgtest.NewGate(t, pgtest.Shared(t).Addr)
	return trouble{gate, newLocker(t, pgtest.Pool(t, gate.URL()), change...), newLocker(t, pgtest.Pool(t, pgtest.Shared(t).URL()))}
}

func brief(o *pglock.Options) { o.Budget = time.Second }

func TestAnAcquireThatIsNotAnsweredLeavesNoLease(t *testing.T) {
	t.Parallel()
	w := through(t, brief)
	release(t, acquire(t, w.inside, "key", long)) // so that there is a connection
	w.gate.Mute(true)
	_, err := w.inside.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, pglock.ErrBudget)
	require.NotErrorIs(t, err, recompute.ErrHeld)
	release(t, freed(t, w.outside, "key"))

	w.gate.Mute(false)
	release(t, acquire(t, w.inside, "key", long))
	w.gate.Mute(true)
	began := time.Now()
	_, err = w.inside.Acquire(within(t, 50*time.Millisecond), "key", long)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(began), time.Second, "a caller waits no longer than it wanted")
	release(t, freed(t, w.outside, "key"))
}

func TestAHolderWhoseConnectionBreaksHasLostItsLease(t *testing.T) {
	t.Parallel()
	w := through(t)
	for name, step := range map[string]func(recompute.Lease) error{
		"extend":  func(h recompute.Lease) error { return h.Extend(t.Context(), long) },
		"release": func(h recompute.Lease) error { return h.Release(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			lease := acquire(t, w.inside, "key", long)
			w.gate.Cut()
			release(t, freed(t, w.outside, "key")) // long before its ttl
			require.ErrorIs(t, step(lease), recompute.ErrLost)
			require.ErrorIs(t, lease.Extend(t.Context(), long), recompute.ErrLost)
			require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
		})
	}
}

func TestALeaseOfAServerThatIsNotHeardEndsByItself(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	w := through(t)
	since := time.Now()
	lease := acquire(t, w.inside, "key", ttl)
	work, stop := recompute.Hold(t.Context(), nil, lease, since, ttl, recompute.Trace{})
	defer stop()
	w.gate.Mute(true)
	muted := time.Now()
	<-work.Done()
	assert.Equal(t, recompute.ErrLost, context.Cause(work))
	assert.Less(t, time.Since(muted), ttl, "the work ends first")
	release(t, freed(t, w.outside, "key"))
	require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
}

func TestAReleaseThatIsNotAnsweredEndsTheSession(t *testing.T) {
	t.Parallel()
	w := through(t, brief)
	lease := acquire(t, w.inside, "key", long)
	w.gate.Mute(true)
	err := lease.Release(t.Context())
	require.ErrorIs(t, err, pglock.ErrBudget)
	require.NotErrorIs(t, err, recompute.ErrLost)
	release(t, freed(t, w.outside, "key"))
}

func TestAReleaseIsNotHeldUpByAnExtension(t *testing.T) {
	t.Parallel()
	w := through(t, brief)
	lease := acquire(t, w.inside, "key", long)
	w.gate.Mute(true)
	extended := make(chan error)
	go func() { extended <- lease.Extend(t.Context(), long) }()
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
	assert.Less(t, time.Since(began), soon)
	require.ErrorIs(t, <-extended, recompute.ErrLost)
	release(t, freed(t, w.outside, "key"))
}

func TestAnExtensionOutlastsAStallThatTheLeaseOutlasts(t *testing.T) {
	t.Parallel()
	w := through(t, func(o *pglock.Options) { o.Budget = 200 * time.Millisecond })
	lease := acquire(t, w.outside, "other", long) // the shared server is not the one that stalls
	release(t, lease)
	var err error
	require.Eventually(t, func() bool { lease, err = w.inside.Acquire(t.Context(), "key", long); return err == nil }, soon, 10*time.Millisecond)
	w.gate.Mute(true)
	stalled := time.AfterFunc(time.Second, func() { w.gate.Mute(false) })
	defer stalled.Stop()
	require.NoError(t, lease.Extend(t.Context(), long), "although the budget is shorter")
	ended, end := context.WithCancel(t.Context())
	w.gate.Mute(true)
	time.AfterFunc(50*time.Millisecond, end)
	require.ErrorIs(t, lease.Extend(ended, long), recompute.ErrLost, "it gives up once nobody waits for it")
}

func TestALeaseEndsWithItsServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	l := newLocker(t, pgtest.Pool(t, s.URL()))
	lease := acquire(t, l, "key", long)
	first := fence(t, lease)
	require.NoError(t, s.Crash())
	require.ErrorIs(t, lease.Extend(t.Context(), long), recompute.ErrLost)
	require.NoError(t, s.Restart())
	require.Eventually(t, func() bool {
		successor, err := l.Acquire(t.Context(), "key", long)
		if err == nil {
			assert.Greater(t, fence(t, successor), first, "what was numbered stays numbered")
			release(t, successor)
		}
		return err == nil
	}, soon, 10*time.Millisecond)
}

func TestAPoolerIsRefused(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	gate := pgtest.NewGate(t, s.Addr)
	gate.Pooler()
	l := newLocker(t, pgtest.Pool(t, gate.URL()))
	direct := pgtest.Pool(t, s.URL())
	_, err := l.Acquire(t.Context(), "key", long)
	require.ErrorContains(t, err, "a pooler is between")
	var granted bool
	require.NoError(t, direct.QueryRow(t.Context(), "SELECT is_called FROM bellwether_fence").Scan(&granted))
	assert.False(t, granted, "nothing is left to the session that isn't ours")
	assert.Zero(t, locks(t, direct))
}
