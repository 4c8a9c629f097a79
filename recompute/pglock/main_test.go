package pglock_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/pglock"
	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgtest"
)

const (
	long = time.Minute
	soon = 10 * time.Second // for what happens behind a call, on a busy machine
)

func TestMain(m *testing.M) {
	if os.Getenv(inChild) != "" {
		child()
		return
	}
	flag.Parse()
	must(flag.Set("test.parallel", "6")) // most tests here wait most of the time
	pgtest.Main(m, func(code int) int {
		// What ends a session that was given up goes on for a while.
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	})
}

// newLocker returns a locker with keys of its own, patient with a busy machine unless told otherwise.
func newLocker(t testing.TB, pool *pgxpool.Pool, change ...func(*pglock.Options)) *pglock.Locker {
	t.Helper()
	o := pglock.Options{Prefix: t.Name(), Budget: soon}
	for _, f := range change {
		f(&o)
	}
	l, err := pglock.New(pool, o)
	require.NoError(t, err)
	require.NoError(t, l.Create(t.Context()))
	return l
}

// open returns a locker on the shared server.
func open(t testing.TB, change ...func(*pgxpool.Config)) (*pglock.Locker, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Shared(t).URL(), change...)
	return newLocker(t, pool), pool
}

func acquire(t testing.TB, l recompute.Locker, key string, ttl time.Duration) recompute.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), key, ttl)
	require.NoError(t, err)
	return lease
}

// freed waits until key can be had and returns its lease.
func freed(t testing.TB, l recompute.Locker, key string) (lease recompute.Lease) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, err := l.Acquire(t.Context(), key, long)
		lease = got
		if err != nil {
			require.ErrorIs(t, err, recompute.ErrHeld)
		}
		return err == nil
	}, soon, 5*time.Millisecond, "%q is still held", key)
	return lease
}

func release(t testing.TB, lease recompute.Lease) {
	t.Helper()
	require.NoError(t, lease.Release(t.Context()))
}

// locks returns how many advisory locks there are in the database that pool is of.
func locks(t testing.TB, pool *pgxpool.Pool) (n int) {
	t.Helper()
	sql := "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	require.NoError(t, pool.QueryRow(t.Context(), sql).Scan(&n))
	return n
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
