package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
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
		waiter := ask(t, replicas[1], key, v.compute)
		time.Sleep(50 * time.Millisecond)
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
