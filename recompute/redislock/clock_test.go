package redislock_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
)

// A lease lasts by the server's timer and is relied on by its holder's: what time of day either thinks that it is matters to neither.
func TestAServerWithAnotherTimeOfDayGrantsALeaseToOne(t *testing.T) {
	t.Parallel()
	m := miniredis.NewMiniRedis() // whose clock can be set
	m.SetTime(time.Now())
	require.NoError(t, m.Start())
	t.Cleanup(m.Close)
	a, b := fenced(t, to(t, m.Addr())), fenced(t, to(t, m.Addr()))
	last := int64(0)
	for _, off := range []time.Duration{0, time.Hour, -time.Hour, 10 * time.Second, -10 * time.Second, 0} {
		m.SetTime(time.Now().Add(off))
		lease := acquire(t, a, "key", 5*time.Second)
		assert.Equal(t, 5*time.Second, m.TTL("bellwether:lease:{key}"), off)
		_, err := b.Acquire(t.Context(), "key", 5*time.Second)
		require.ErrorIs(t, err, recompute.ErrHeld, off)
		require.NoError(t, lease.Extend(t.Context(), 10*time.Second))
		assert.Equal(t, 10*time.Second, m.TTL("bellwether:lease:{key}"), off)
		assert.Greater(t, fenceOf(t, lease), last, off)
		last = fenceOf(t, lease)
		require.NoError(t, lease.Release(t.Context()))
	}
}

// Replication is asynchronous, so a failover can lose what was granted just before. Then two hold it, as is said in the package's doc,
// and what they write keeps its order all the same.
func TestAfterAFailoverThatLostALeaseTheFenceIsHigher(t *testing.T) {
	t.Parallel()
	main, replica := replicated(t)
	old, next := redistest.Client(t, main), redistest.Client(t, replica)
	before, after := fenced(t, old), fenced(t, next)
	number(t, before) // the replica knows of this one
	require.EqualValues(t, 1, old.Wait(t.Context(), 1, soon).Val())
	// And hears no more: it is stopped, and what is under way to it is thrown away.
	require.NoError(t, replica.Pause())
	require.NoError(t, old.ClientKillByFilter(t.Context(), "TYPE", "replica").Err())
	for range 3 {
		number(t, before)
	}
	lost := acquire(t, before, "key", long)
	require.NoError(t, main.Kill())
	require.NoError(t, replica.Resume())
	require.NoError(t, next.ReplicaOf(t.Context(), "NO", "ONE").Err())

	require.Empty(t, locks(t, next), "the lease was not lost, so this is about nothing")
	assert.Greater(t, number(t, after), fenceOf(t, lost))
}
