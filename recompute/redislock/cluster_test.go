package redislock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// takeover is the longest that a cluster may take to replace a primary.
const takeover = 30 * time.Second

// A cluster client asks any node for the layout, the silent one too.
func TestALockerFollowsItsClusterThoughANodeIsSilent(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t)
	lockers := make([]*redislock.Locker, 6) // each asks the nodes in an order of its own
	for i := range lockers {
		lockers[i] = newLocker(clusterClient(t, c))
		acquire(t, lockers[i], fmt.Sprint("warm", i), long)
	}
	owner := ownerOf(t, c, "{flock}")
	require.NoError(t, owner.Pause())
	var wg sync.WaitGroup
	for i, l := range lockers {
		wg.Go(func() {
			var replaced time.Time
			assert.Eventually(t, func() bool {
				if _, err := l.Acquire(t.Context(), "flock", 100*time.Millisecond); err == nil {
					return true
				}
				if next := c.Owner("{flock}"); replaced.IsZero() && next != "" && next != owner.Addr {
					replaced = time.Now()
				}
				return false
			}, takeover, 20*time.Millisecond)
			t.Logf("locker %d: %v after the replacement", i, time.Since(replaced).Round(time.Millisecond))
			assert.True(t, replaced.IsZero() || time.Since(replaced) < 4*time.Second)
		})
	}
	wg.Wait()
	require.NoError(t, owner.Resume())
}

// A hub notices by itself that its node has died, though its process sends nothing.
func TestAHubFollowsItsCluster(t *testing.T) {
	t.Parallel()
	c := redistest.Cluster(t)
	rdb := clusterClient(t, c)
	e := listen(t, newHub(rdb))
	_, err := e.next(redislock.Up)
	require.NoError(t, err)
	owner := ownerOf(t, c, channel)
	require.NoError(t, owner.Kill())
	_, err = e.next(redislock.Down)
	require.Error(t, err)
	require.Eventually(t, func() bool { next := c.Owner(channel); return next != "" && next != owner.Addr }, takeover, 20*time.Millisecond)
	replaced := time.Now()
	hears := func() bool { all := e.all(); return all[len(all)-1].Kind == redislock.Up }
	require.Eventually(t, hears, 5*time.Second, 10*time.Millisecond)
	t.Logf("it hears %v after the replacement", time.Since(replaced).Round(time.Millisecond))
}

func clusterClient(t testing.TB, c *redisserver.Cluster) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { assert.NoError(t, rdb.Close()) })
	return rdb
}

// ownerOf returns the node that has a key.
func ownerOf(t testing.TB, c *redisserver.Cluster, key string) *redisserver.Server {
	t.Helper()
	addr := c.Owner(key)
	for _, n := range c.Nodes {
		if n.Addr == addr {
			return n
		}
	}
	require.FailNow(t, "nobody has "+key)
	return nil
}
