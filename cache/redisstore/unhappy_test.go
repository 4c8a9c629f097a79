package redisstore_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Once it is known that Redis is away nothing is asked of it, and so there is little to take back when it returns.
func TestAnOutageLeavesNothingToTakeBack(t *testing.T) {
	s := redistest.Start(t)
	r := join(t, s.Addr, plain[string])
	get(t, r, "warm", (&origin[string]{value: "v"}).compute, cache.Computed)
	require.NoError(t, s.Kill())
	base, began := runtime.NumGoroutine(), time.Now()
	for i := range 1500 {
		require.Less(t, time.Since(began), 30*time.Second, "it waits for Redis each time")
		_, err := r.Lookup(t.Context(), fmt.Sprint("k", i), (&origin[string]{value: "v"}).compute)
		require.NoError(t, err)
		time.Sleep(time.Millisecond)
	}
	assert.Less(t, runtime.NumGoroutine()-base, 300)
	require.NoError(t, s.Restart())
	c := redistest.Commands(t, s)
	time.Sleep(3 * time.Second)
	assert.Less(t, len(c.Stop()), 100, "without a caller")
	assert.Empty(t, leases(redistest.Client(t, s)))
}

func TestAFullServerDeletesUnderLoad(t *testing.T) {
	s := redistest.Start(t)
	r := join[string](t, s.Addr)
	get(t, r, "k", (&origin[string]{value: "old"}).compute, cache.Computed)
	require.NoError(t, r.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				_, _ = r.Lookup(ctx, fmt.Sprint("m", i, n), (&origin[string]{value: "v"}).compute)
				time.Sleep(time.Millisecond)
			}
		})
	}
	time.Sleep(300 * time.Millisecond) // by now it is known to take no writes
	for range 100 {
		assert.NoError(t, r.Delete(t.Context(), "k"))
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	all.Wait()
	require.NoError(t, r.rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
}

func TestAForeignLockWithALongTTLCausesNoBusyLoop(t *testing.T) {
	s := redistest.Start(t)
	r := join(t, s.Addr, func(s *setup[string]) { s.cache.Wait = time.Second })
	for _, ttl := range []int64{10_000_000_000_000, 3600_000} {
		require.NoError(t, r.rdb.Do(t.Context(), "SET", redisKey("l", "k"), "x", "PX", ttl).Err())
		c := redistest.Commands(t, s)
		_, err := r.Lookup(t.Context(), "k", never[string](t))
		require.ErrorIs(t, err, cache.ErrBusy)
		assert.Less(t, len(c.Stop()), 10)
	}
}

func TestALateDeletionEndsAFailure(t *testing.T) {
	s := redistest.Start(t)
	rdb := redistest.Client(t, s)
	stores := map[string]cache.Store{"redis": redisstore.New(rdb, redisstore.Options{}), "memory": cache.NewMemory()}
	for name, st := range stores {
		key := cache.Key{Name: "k", Schema: "0123456789abcdef"}
		f, _, err := st.Begin(t.Context(), key, 0, time.Minute)
		require.NoError(t, err)
		require.NoError(t, st.Fail(t.Context(), key, cache.Failure{Fence: f, Text: "x", Pause: time.Minute}))
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, st.Delete(t.Context(), 10*time.Millisecond, "k"))
		_, _, err = st.Begin(t.Context(), key, 0, time.Minute)
		assert.NoError(t, err, name)
	}
}

func TestALateDeletionLeavesWhatIsNewer(t *testing.T) {
	s := redistest.Start(t)
	rdb := redistest.Client(t, s)
	st := redisstore.New(rdb, redisstore.Options{})
	key := cache.Key{Name: "k", Schema: "0123456789abcdef"}
	f, _, err := st.Begin(t.Context(), key, 0, 100*time.Millisecond)
	require.NoError(t, err)
	require.NoError(t, st.Set(t.Context(), key, cache.Write{Data: []byte("new"), Fence: f, TTL: time.Hour}))
	time.Sleep(300 * time.Millisecond)
	require.NoError(t, st.Delete(t.Context(), time.Hour, "k")) // was due an hour ago
	_, err = st.Get(t.Context(), key)
	assert.NoError(t, err)

	f, _, err = st.Begin(t.Context(), key, 0, time.Minute)
	require.NoError(t, err)
	require.NoError(t, st.Delete(t.Context(), 0, "k"))
	require.NoError(t, st.Delete(t.Context(), time.Hour, "k"))
	err = st.Set(t.Context(), key, cache.Write{Data: []byte("old"), Fence: f, TTL: time.Hour})
	assert.ErrorIs(t, err, cache.ErrFenced, "the one that came in time counts as before")

	f, _, err = st.Begin(t.Context(), key, 0, time.Minute)
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond)
	newer := cache.Key{Name: "k", Schema: "fedcba9876543210"} // stays, so that the deletion frees nothing
	g, _, err := st.Begin(t.Context(), newer, 0, time.Minute)
	require.NoError(t, err)
	require.NoError(t, st.Set(t.Context(), newer, cache.Write{Data: []byte("new"), Fence: g, TTL: time.Hour}))
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.NoError(t, st.Delete(t.Context(), 100*time.Millisecond, "k"))
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	err = st.Set(t.Context(), key, cache.Write{Data: []byte("old"), Fence: f, TTL: time.Hour})
	assert.ErrorIs(t, err, cache.ErrFenced, "nor does it count less on a server without memory")
}

func TestANilClusterClientIsReported(t *testing.T) {
	_, err := cache.New(redisstore.New((*redis.ClusterClient)(nil), redisstore.Options{}), cache.Options[string]{Policy: minute})
	require.ErrorContains(t, err, "client is nil")
}
