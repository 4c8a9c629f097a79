package pglock_test

import (
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

func fence(t testing.TB, lease recompute.Lease) int64 {
	t.Helper()
	fenced, ok := lease.(recompute.Fenced)
	require.True(t, ok, "a lease has a fence")
	return fenced.Fence()
}

func TestFencesGrowWithEachGrantInWhateverSession(t *testing.T) {
	t.Parallel()
	var lockers []*pglock.Locker
	for range 4 {
		l, _ := open(t)
		lockers = append(lockers, l)
	}
	var mu sync.Mutex
	var last int64
	var grants int
	var all sync.WaitGroup
	for _, l := range lockers {
		all.Go(func() {
			for range 25 {
				lease := freed(t, l, "key")
				n := fence(t, lease)
				mu.Lock()
				assert.Greater(t, n, last)
				last = n
				grants++
				mu.Unlock()
				assert.NoError(t, lease.Release(t.Context()))
			}
		})
	}
	all.Wait()
	assert.Equal(t, 100, grants)
}

func TestAFenceIsKeptByALeaseThatIsExtended(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	lease := acquire(t, l, "key", long)
	n := fence(t, lease)
	assert.Positive(t, n)
	require.NoError(t, lease.Extend(t.Context(), long))
	assert.Equal(t, n, fence(t, lease))
	release(t, lease)
}

// The rights that the documentation names are enough, and each is needed.
func TestALockerNeedsNoRightButUsageOfItsSequence(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	admin := pgtest.Pool(t, s.URL())
	newLocker(t, admin)
	_, err := admin.Exec(t.Context(), "CREATE ROLE app LOGIN; REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO app")
	require.NoError(t, err)
	l, err := pglock.New(pgtest.Pool(t, s.URL(), func(c *pgxpool.Config) { c.ConnConfig.User = "app" }), pglock.Options{Budget: soon})
	require.NoError(t, err)
	_, err = l.Acquire(t.Context(), "key", long)
	require.ErrorContains(t, err, "permission denied for sequence bellwether_fence")
	require.Eventually(t, func() bool { return locks(t, admin) == 0 }, soon, time.Millisecond, "what is refused leaves no lease")
	other, err := pglock.New(pgtest.Pool(t, s.URL(), func(c *pgxpool.Config) { c.ConnConfig.User = "app" }), pglock.Options{Schema: "other"})
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), "CREATE SCHEMA other; GRANT USAGE ON SCHEMA other TO app")
	require.NoError(t, err)
	require.ErrorContains(t, other.Create(t.Context()), "permission denied for schema other")
	require.NoError(t, l.Create(t.Context()), "nothing is to be done")

	_, err = admin.Exec(t.Context(), "GRANT USAGE ON SEQUENCE bellwether_fence TO app")
	require.NoError(t, err)
	lease := acquire(t, l, "key", long)
	require.NoError(t, lease.Extend(t.Context(), long))
	woken, stop := l.Wake(t.Context(), "key")
	defer stop()
	<-woken // it listens
	release(t, lease)
	select {
	case <-woken:
	case <-time.After(soon):
		t.Fatal("a release woke nobody")
	}
}
