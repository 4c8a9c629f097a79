package pglock_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/pglock"
	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgtest"
	"github.com/bellwether-cache/bellwether/recompute/recomputetest"
)

func TestTheContractHolds(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Shared(t).URL(), func(c *pgxpool.Config) { c.MaxConns = 200 })
	t.Run("all", func(t *testing.T) { // whose end is that of its parallel parts, and before that of the pool
		recomputetest.TestLocker(t, nil, func(t *testing.T) recompute.Locker { return newLocker(t, pool) })
	})
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	_, err := pglock.New(nil, pglock.Options{})
	require.ErrorContains(t, err, "the pool is nil")
	for _, budget := range []time.Duration{-1, 60} {
		_, err = pglock.New(pgtest.Pool(t, pgtest.Shared(t).URL()), pglock.Options{Budget: budget})
		require.ErrorContains(t, err, fmt.Sprint("Options.Budget is ", budget, ", must be at least 1ms (0: 2s); a bare number means nanoseconds"))
	}
}

func TestLockersOfOtherPrefixesAndSchemasDoNotMeet(t *testing.T) {
	t.Parallel()
	one, pool := open(t)
	_, err := pool.Exec(t.Context(), "CREATE SCHEMA IF NOT EXISTS other")
	require.NoError(t, err)
	for _, change := range []func(*pglock.Options){
		func(o *pglock.Options) { o.Prefix += "2" },
		func(o *pglock.Options) { o.Schema = "other" },
	} {
		other := newLocker(t, pool, change)
		a, b := acquire(t, one, "key", long), acquire(t, other, "key", long)
		release(t, a)
		release(t, b)
	}
}

func TestTTLsThatPostgreSQLWouldReadAsZeroOrNotAtAllAreRefused(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	lease := acquire(t, l, "held", long)
	for _, ttl := range []time.Duration{time.Millisecond - 1, math.MaxInt32*time.Millisecond + 1, math.MaxInt64} {
		_, err := l.Acquire(t.Context(), "key", ttl)
		require.ErrorContains(t, err, "must be at least 1ms and at most 596h31m23.647s")
		require.ErrorContains(t, lease.Extend(t.Context(), ttl), "must be at least 1ms and at most 596h31m23.647s")
	}
	require.NoError(t, lease.Extend(t.Context(), math.MaxInt32*time.Millisecond))
	release(t, lease)
	acquire(t, l, "key", time.Millisecond)
	release(t, freed(t, l, "key"))
}

func TestALeaseLastsAsLongAsItIsHeld(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	l, _ := open(t)
	since := time.Now()
	lease := acquire(t, l, "key", ttl)
	work, stop := recompute.Hold(t.Context(), nil, lease, since, ttl, recompute.Trace{})
	for range 15 {
		time.Sleep(ttl / 5)
		require.NoError(t, work.Err())
		_, err := l.Acquire(t.Context(), "key", ttl)
		require.ErrorIs(t, err, recompute.ErrHeld)
	}
	stop()
	release(t, lease)
	release(t, acquire(t, l, "key", ttl))
}

func TestASessionServesAnythingAgainAfterItsLease(t *testing.T) {
	t.Parallel()
	l, pool := open(t, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ConnConfig.RuntimeParams["idle_session_timeout"] = "54321"
	})
	for range 3 {
		lease := acquire(t, l, "key", 200*time.Millisecond)
		require.NoError(t, lease.Extend(t.Context(), 300*time.Millisecond))
		release(t, lease)
		var idle string
		require.NoError(t, pool.QueryRow(t.Context(), "SHOW idle_session_timeout").Scan(&idle))
		assert.Equal(t, "54321ms", idle)
	}
	time.Sleep(400 * time.Millisecond)
	require.NoError(t, pool.Ping(t.Context()))
	assert.EqualValues(t, 1, pool.Stat().NewConnsCount(), "one session did it all")
}

func TestWhoIsRefusedTakesNothing(t *testing.T) {
	t.Parallel()
	l, pool := open(t)
	lease := acquire(t, l, "key", long)
	for range 20 {
		_, err := l.Acquire(t.Context(), "key", time.Millisecond)
		require.ErrorIs(t, err, recompute.ErrHeld)
	}
	assert.LessOrEqual(t, pool.Stat().TotalConns(), int32(2))
	assert.EqualValues(t, 1, pool.Stat().AcquiredConns())
	release(t, lease)
	assert.Zero(t, pool.Stat().AcquiredConns())
}

func TestAFullPoolIsAnErrorOnceTheBudgetIsSpent(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Shared(t).URL(), func(c *pgxpool.Config) { c.MaxConns = 1 })
	l := newLocker(t, pool, func(o *pglock.Options) { o.Budget = 300 * time.Millisecond })
	lease := acquire(t, l, "one", long)
	_, err := l.Acquire(t.Context(), "two", long)
	require.ErrorIs(t, err, pglock.ErrBudget)
	require.NotErrorIs(t, err, recompute.ErrHeld)
	require.NoError(t, lease.Extend(t.Context(), long), "a lease's own session needs no other")
	release(t, lease)
}

func TestLockersCanCreateAtOnce(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, pgtest.Start(t).URL())
	l, err := pglock.New(pool, pglock.Options{Budget: soon})
	require.NoError(t, err)
	_, err = l.Acquire(t.Context(), "key", long)
	require.ErrorContains(t, err, `relation "public.bellwether_fence" does not exist`)
	require.Eventually(t, func() bool { return locks(t, pool) == 0 }, soon, time.Millisecond, "what is refused leaves no lease")
	for range 20 {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { assert.NoError(t, l.Create(context.WithoutCancel(t.Context()))) })
		}
		all.Wait()
		_, err := pool.Exec(t.Context(), "DROP SEQUENCE bellwether_fence")
		require.NoError(t, err)
	}
	require.NoError(t, l.Create(t.Context()))
	release(t, acquire(t, l, "key", long))
}
