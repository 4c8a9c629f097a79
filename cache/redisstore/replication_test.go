package redisstore_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Replication is asynchronous, so a failover can lose what was confirmed just before, and the other server has all up to some moment
// and nothing after. What is lost of a deletion is lost. But a computation whose number is lost publishes nothing, and a deletion
// after the failover holds for all computations that began before it, on whatever server.
func TestAComputationWhoseNumberAFailoverLostPublishesNothing(t *testing.T) {
	t.Parallel()
	primary, replica := serve(t), serve(t)
	old, next := redistest.Client(t, primary), redistest.Client(t, replica)
	host, port, _ := strings.Cut(primary.Addr, ":")
	require.NoError(t, next.ReplicaOf(ctx, host, port).Err())
	follows := func() bool { _, follows, _ := standins{t: t}.replication(replica); return follows }
	require.Eventually(t, follows, patience, tick)
	before := redisstore.New(old, redisstore.Options{Prefix: prefix, Budget: patience})
	after := redisstore.New(next, redisstore.Options{Prefix: prefix, Budget: patience})
	key := cache.Key{Name: "k", Schema: "0123456789abcdef"}
	other := cache.Key{Name: "other", Schema: key.Schema}
	begin := func(s cache.Store, key cache.Key) cache.Fence {
		f, _, err := s.Begin(ctx, key, math.MaxInt64, time.Minute)
		require.NoError(t, err)
		return f
	}
	write := func(v string, f cache.Fence) cache.Write {
		return cache.Write{Data: []byte(v), Fence: f, TTL: time.Minute}
	}

	early := begin(before, key) // will be known to both
	require.NoError(t, before.Set(ctx, key, write("v", begin(before, key))))
	require.EqualValues(t, 1, old.Wait(ctx, 1, patience/3).Val()) // on any connection: nobody else writes
	// The replica hears no more: it is stopped, and what is under way to it is thrown away.
	require.NoError(t, replica.Pause())
	require.NoError(t, old.ClientKillByFilter(ctx, "TYPE", "replica").Err())
	lost := begin(before, key)
	unknown := begin(before, other)
	require.NoError(t, before.Delete(ctx, 0, key.Name))
	_, err := before.Get(ctx, key)
	require.ErrorIs(t, err, cache.ErrNotFound)
	require.NoError(t, primary.Kill())
	require.NoError(t, replica.Resume())
	require.NoError(t, next.ReplicaOf(ctx, "NO", "ONE").Err())

	_, err = after.Get(ctx, key)
	require.NoError(t, err, "the deletion was not lost, so this is about nothing")
	require.ErrorIs(t, after.Set(ctx, key, write("lost", lost)), cache.ErrFenced)
	require.ErrorIs(t, after.Set(ctx, other, write("unknown", unknown)), cache.ErrFenced)

	require.NoError(t, after.Delete(ctx, 0, key.Name))
	later := begin(after, key)
	assert.Greater(t, later, lost, "numbers grow with time, whatever is lost")
	for _, f := range []cache.Fence{early, lost} {
		require.ErrorIs(t, after.Set(ctx, key, write("deleted", f)), cache.ErrFenced)
	}
	require.NoError(t, after.Set(ctx, key, write("new", later)))
	for name, ttl := range redistest.Keys(t, next) {
		assert.Positive(t, ttl, name)
	}
}
