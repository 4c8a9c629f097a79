package redisstore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// strange are keys that have confused others: by their bytes, their length, or their braces.
var strange = []string{
	" ", "a b", "a\r\nSET x y\r\n", "\x00", "a\x00b", "\xff\xfe", "caf\u00e9", "cafe\u0301", "*", "[a-z]", `"`, `\`, ":", "$5",
	strings.Repeat("x", 511), strings.Repeat("x", 512), strings.Repeat("x", 513), strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20) + "y",
	"sha256#", "v:{k}", "t:v:{k}",
	"{", "}", "{}", "}{", "}x", "x}", "{x", "x{", "{}x", "x{}", "{{}}", "}}", "{a}{b}", "user:{42}:x", "tpl{{.ID}}", `json{"id":1}`, "a}b", "~", "{~}", "~}x",
}

// Case 49: every key has an entry of its own, whatever bytes it is made of.
func TestStrangeKeysKeepApart(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := join[string](t, s.Addr), join[string](t, s.Addr)
	for _, key := range strange {
		get(t, a, key, (&origin[string]{value: key}).compute, cache.Computed)
	}
	for _, key := range strange {
		if got := get(t, b, key, never[string](t), cache.Hit); got != key {
			t.Errorf("%.20q has the value of %.20q", key, got)
		}
	}
	for i, key := range strange {
		require.NoError(t, b.Delete(t.Context(), key))
		_, err := a.Get(t.Context(), key)
		require.ErrorIs(t, err, cache.ErrNotFound)
		if i+1 < len(strange) {
			_, err = a.Get(t.Context(), strange[i+1])
			require.NoError(t, err, "%.20q", strange[i+1])
		}
	}
	for key := range redistest.Keys(t, a.rdb) {
		assert.Less(t, len(key), 600, "%.20q…", key)
	}
}

// Case 47: on a cluster, all Redis keys of a name are in one slot, and the scripts run there.
func TestOnAClusterTheKeysOfANameShareASlot(t *testing.T) {
	t.Parallel()
	s := clusterOfOne(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}})
	t.Cleanup(func() { assert.NoError(t, rdb.Close()) })
	c, err := cache.New(redisstore.New(rdb, redisstore.Options{Prefix: prefix}), cache.Options[string]{Policy: minute})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	plain := redistest.Client(t, s)

	for _, key := range strange {
		require.NoError(t, plain.FlushAll(t.Context()).Err())
		slots := make(map[int64][]string)
		note := func() {
			for redisKey := range redistest.Keys(t, plain) {
				slot, err := plain.ClusterKeySlot(t.Context(), redisKey).Result()
				require.NoError(t, err)
				slots[slot] = append(slots[slot], redisKey)
			}
		}
		v, err := c.GetOrCompute(t.Context(), key, func(ctx context.Context) (string, error) {
			note() // the lease is there
			return "v", nil
		})
		require.NoError(t, err)
		assert.Equal(t, "v", v)
		note()
		require.NoError(t, c.Delete(t.Context(), key))
		require.NoError(t, c.Set(t.Context(), key, "w"))
		note()
		for slot, keys := range slots {
			assert.GreaterOrEqual(t, len(keys), 6, "slot %d: %.100q", slot, keys)
		}
		assert.Len(t, slots, 1, "%.100q", slots)
		got, err := c.Lookup(t.Context(), key, func(context.Context) (string, error) { return "", assert.AnError })
		require.NoError(t, err)
		assert.Equal(t, "w", got.Value)
		assert.Equal(t, cache.Hit, got.Outcome)
	}
}

// A herd on a cluster, whose clock is never known: no entry comes along with its announcement, but all else is the same.
func TestAHerdOnAClusterComputesOnce(t *testing.T) {
	t.Parallel()
	s := clusterOfOne(t)
	var replicas []*cache.Cache[string]
	for range 3 {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}})
		t.Cleanup(func() { _ = rdb.Close() })
		c, err := cache.New(redisstore.New(rdb, redisstore.Options{Prefix: prefix, Budget: patience}), cache.Options[string]{Policy: minute})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, c.Close()) })
		replicas = append(replicas, c)
	}
	o := origin[string]{value: "v", takes: 2500 * time.Millisecond} // longer than a lease
	var wg sync.WaitGroup
	for _, c := range replicas {
		for range 20 {
			wg.Go(func() {
				v, err := c.GetOrCompute(t.Context(), "{a}{b}", o.compute)
				assert.NoError(t, err)
				assert.Equal(t, "v", v)
			})
		}
	}
	wg.Wait()
	assert.EqualValues(t, 1, o.runs.Load())
	require.NoError(t, replicas[0].Delete(t.Context(), "{a}{b}"))
	_, err := replicas[1].Get(t.Context(), "{a}{b}")
	require.ErrorIs(t, err, cache.ErrNotFound)
}

// clusterOfOne starts a server that is a whole cluster.
func clusterOfOne(t *testing.T) *redisserver.Server {
	t.Helper()
	s := serve(t, "--cluster-enabled", "yes")
	rdb := redistest.Client(t, s)
	require.NoError(t, rdb.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		info, err := rdb.ClusterInfo(ctx).Result()
		assert.NoError(t, err)
		assert.Contains(t, info, "cluster_state:ok")
	}, patience, tick)
	return s
}
