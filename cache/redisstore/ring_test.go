package redisstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The servers of a ring know nothing of each other, so no channel reaches all: waiting is polling there.
func TestOnARingWaitingIsPolling(t *testing.T) {
	t.Parallel()
	addrs := map[string]string{"one": serve(t).Addr, "two": serve(t).Addr}
	var replicas []*replica[string]
	for range 2 {
		rdb := redis.NewRing(&redis.RingOptions{Addrs: addrs})
		t.Cleanup(func() { _ = rdb.Close() })
		tally := &tally{steps: make(map[string]int)}
		c, err := cache.New(redisstore.New(rdb, redisstore.Options{Prefix: prefix, Budget: patience}),
			cache.Options[string]{Policy: minute, Lease: patience, Trace: tally.trace()})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, c.Close()) })
		replicas = append(replicas, &replica[string]{Cache: c, tally: tally})
		require.Eventually(t, func() bool { return tally.pushed(false) }, patience, tick)
	}
	for i := range 8 { // some on each server
		key := fmt.Sprint(i)
		v := gate("v")
		leader := ask(t, replicas[0], key, v.compute)
		<-v.running
		held := replicas[1].tally.held.Load()
		waiter := ask(t, replicas[1], key, v.compute)
		require.Eventually(t, func() bool { return replicas[1].tally.held.Load() > held }, patience, tick)
		close(v.open)
		opened := time.Now()
		require.NoError(t, (<-leader).err)
		got := <-waiter
		require.NoError(t, got.err)
		assert.Equal(t, cache.Collapsed, got.Outcome)
		assert.Less(t, time.Since(opened), time.Second)
		require.NoError(t, replicas[1].Delete(t.Context(), key))
		_, err := replicas[0].Get(t.Context(), key)
		require.ErrorIs(t, err, cache.ErrNotFound)
	}
}

// Each client of a ring finds out for itself that a server has died, and gives its keys to another, which has nothing of them: they
// are computed there. When the server is back, empty, so are they, once more.
func TestAServerOfARingThatDiesCostsNoCallerItsValue(t *testing.T) {
	t.Parallel()
	one, two := serve(t), serve(t)
	s := standins{t: t}
	var rings []*redis.Ring
	var replicas []*replica[int64]
	for i := range 3 {
		rings = append(rings, ringOf(one, two))
		replicas = append(replicas, found(t, rings[i], s.member(i)))
	}
	servers := func(n int) func() bool {
		return func() bool {
			return !slices.ContainsFunc(rings, func(ring *redis.Ring) bool { return ring.Len() != n })
		}
	}
	var changing, still []string
	for i := range 6 {
		changing, still = append(changing, fmt.Sprint("c", i)), append(still, fmt.Sprint("s", i))
	}
	spared := slices.DeleteFunc(slices.Clone(still), func(key string) bool {
		client, err := rings[0].GetShardClientForKey(redisKey("v", key))
		require.NoError(t, err)
		return client.Options().Addr == one.Addr
	})
	require.NotEmpty(t, spared)
	require.Less(t, len(spared), len(still))
	crowd := gather(t, replicas, changing, still)
	time.Sleep(500 * time.Millisecond)
	crowd.spares(spared, func() {
		crowd.doubtful(func() { // the clients do not find out at once
			require.NoError(t, one.Kill())
			require.Eventually(t, servers(1), takeover, tick)
		})
		replaced := time.Now()
		back := s.onSharedPath(replicas)
		t.Logf("on the shared path after %v; %v", back.Sub(replaced).Round(time.Millisecond), crowd)
		assert.Less(t, back.Sub(replaced), recovery)
		crowd.doubtful(func() {
			require.NoError(t, one.Restart())
			require.Eventually(t, servers(2), takeover, tick)
		})
		s.onSharedPath(replicas)
	})
	crowd.dismiss()
	t.Log(crowd)
	assert.Less(t, time.Duration(crowd.longest.Load()), recovery, "a call")
}

func ringOf(servers ...*redisserver.Server) *redis.Ring {
	addrs := make(map[string]string)
	for i, s := range servers {
		addrs[fmt.Sprint(i)] = s.Addr // the name decides on who has which key
	}
	return redis.NewRing(&redis.RingOptions{Addrs: addrs})
}
