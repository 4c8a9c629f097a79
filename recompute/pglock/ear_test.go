package pglock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/pglock"
	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgtest"
)

// listeners returns how many sessions of pool's database wait for releases, the pool's own aside.
func listeners(t testing.TB, pool *pgxpool.Pool) (pids []uint32) {
	t.Helper()
	rows, err := pool.Query(t.Context(), "SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN bellwether_locks' AND pid <> pg_backend_pid()")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var pid uint32
		require.NoError(t, rows.Scan(&pid))
		pids = append(pids, pid)
	}
	require.NoError(t, rows.Err())
	return pids
}

func next(t testing.TB, woken <-chan struct{}, why string) {
	t.Helper()
	select {
	case <-woken:
	case <-time.After(soon):
		require.Fail(t, "nobody was woken", why)
	}
}

func TestAReleaseWakesThoseWhoWaitForItsKey(t *testing.T) {
	t.Parallel()
	holder, _ := open(t)
	l, _ := open(t)
	mine, theirs := acquire(t, holder, "mine", long), acquire(t, holder, "theirs", long)
	a, stopA := l.Wake(t.Context(), "mine")
	defer stopA()
	next(t, a, "it listens now, and may have missed something")
	b, stopB := l.Wake(t.Context(), "theirs")
	defer stopB()
	release(t, mine)
	next(t, a, "mine was released")
	release(t, theirs)
	next(t, b, "theirs was released")
	assert.Empty(t, a, "which was no concern of mine")
}

func TestOneConnectionListensForAllWhoWaitAndAsLongAsAnyDoes(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	pool := pgtest.Pool(t, s.URL())
	l := newLocker(t, pgtest.Pool(t, s.URL()))
	for range 3 {
		var stops []func()
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 20 {
			woken, stop := l.Wake(ctx, string(rune('a'+i)))
			if i == 0 {
				next(t, woken, "it listens now")
			}
			stops = append(stops, stop)
		}
		assert.Len(t, listeners(t, pool), 1)
		for _, stop := range stops[1:] {
			stop()
			stop() // twice is harmless
		}
		assert.Len(t, listeners(t, pool), 1)
		cancel()
		require.Eventually(t, func() bool { return len(listeners(t, pool)) == 0 }, soon, time.Millisecond)
	}
}

func TestWhoeverMayHaveMissedAReleaseIsWoken(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	pool := pgtest.Pool(t, s.URL())
	l := newLocker(t, pgtest.Pool(t, s.URL()))
	woken, stop := l.Wake(t.Context(), "key")
	defer stop()
	next(t, woken, "it listens now")
	lease := acquire(t, l, "key", long)
	for _, pid := range listeners(t, pool) {
		_, err := pool.Exec(t.Context(), "SELECT pg_terminate_backend($1)", int(pid))
		require.NoError(t, err)
	}
	next(t, woken, "it listens again")
	release(t, lease)
	next(t, woken, "key was released")
}

func TestAConnectionThatHearsNothingIsNoticed(t *testing.T) {
	t.Parallel()
	w := through(t, func(o *pglock.Options) { o.Budget = time.Second })
	woken, stop := w.inside.Wake(t.Context(), "key")
	defer stop()
	next(t, woken, "it listens now")
	w.gate.Mute(true)
	time.Sleep(5 * time.Second) // the silence, and a budget
	w.gate.Mute(false)
	next(t, woken, "it listens again, on a new connection")
}

func TestAGuardThatWaitsRunsAfterTheRelease(t *testing.T) {
	t.Parallel()
	const hold = 300 * time.Millisecond
	one, _ := open(t)
	two, _ := open(t)
	slow := recompute.Backoff{Min: time.Hour, Max: time.Hour, Jitter: 0.5} // nothing but a release wakes it
	guard, err := recompute.NewGuard(two, recompute.GuardOptions{Wait: soon, Retry: slow})
	require.NoError(t, err)
	lease := acquire(t, one, "key", long)
	time.AfterFunc(hold, func() { assert.NoError(t, lease.Release(context.Background())) })
	began := time.Now()
	require.NoError(t, guard.Do(t.Context(), "key", func(context.Context, *recompute.Held) error { return nil }))
	assert.GreaterOrEqual(t, time.Since(began), hold)
}

// What a crowd of waiters costs shows in the pool's own count.
func TestACrowdTakesTurns(t *testing.T) {
	t.Parallel()
	l, pool := open(t, func(c *pgxpool.Config) { c.MaxConns = 5 })
	guard, err := recompute.NewGuard(l, recompute.GuardOptions{Wait: time.Minute})
	require.NoError(t, err)
	var all sync.WaitGroup
	var inside, runs int
	for range 30 {
		all.Go(func() {
			assert.NoError(t, guard.Do(t.Context(), "key", func(context.Context, *recompute.Held) error {
				inside++ // the lease is the lock here: the race detector would tell
				assert.Equal(t, 1, inside)
				inside--
				runs++
				return nil
			}))
		})
	}
	all.Wait()
	assert.Equal(t, 30, runs)
	assert.LessOrEqual(t, pool.Stat().TotalConns(), int32(5))
}

// One op is an acquire and a release that wakes a waiter of another process, so to speak.
func BenchmarkWake(b *testing.B) {
	pool := pgtest.Pool(b, pgtest.Shared(b).URL())
	l, other := newLocker(b, pool), newLocker(b, pool)
	var total time.Duration
	woken, stop := other.Wake(b.Context(), "key")
	defer stop()
	<-woken
	for b.Loop() {
		lease := acquire(b, l, "key", long)
		began := time.Now()
		release(b, lease)
		<-woken
		total += time.Since(began)
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/wake")
}
