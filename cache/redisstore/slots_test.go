package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// While a slot is being moved to another primary, its keys are partly here and partly there, and what needs two of them is refused.
// Its callers compute for themselves; those of other slots notice nothing; nobody gets what was deleted.
func TestASlotThatMovesCostsNoCallerItsValue(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	replicas := s.fleet(3)
	var moving, still []string
	for i := range 5 {
		moving = append(moving, fmt.Sprint("m}", i)) // what stands before the brace decides on the slot
		still = append(still, fmt.Sprint("s", i))
	}
	from := s.server("m")
	to := s.server(still[slices.IndexFunc(still, func(key string) bool { return s.server(key) != from })])
	crowd := gather(t, replicas, moving, still)
	time.Sleep(500 * time.Millisecond)
	crowd.spares(still, func() {
		move(t, from, to, "{m}")
		require.Eventually(t, func() bool { return s.owner("{m}") == to.Addr }, takeover, 10*tick)
		s.onSharedPath(replicas)
	})
	for _, key := range moving {
		require.NoError(t, replicas[0].Delete(ctx, key))
	}
	crowd.dismiss()
	t.Log(crowd)
	assert.Positive(t, crowd.refused.Load(), "no deletion fell into the time in which the slot moved")
	s.checkLeftovers()
}

// move has a key's slot moved from one primary to another, one key after the other, and not in a hurry.
func move(t *testing.T, from, to *redisserver.Server, key string) {
	t.Helper()
	source, target := redistest.Client(t, from), redistest.Client(t, to)
	slot, err := source.ClusterKeySlot(ctx, key).Result()
	require.NoError(t, err)
	id := func(c *redis.Client) string {
		id, err := c.Do(ctx, "CLUSTER", "MYID").Text()
		require.NoError(t, err)
		return id
	}
	require.NoError(t, target.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(source)).Err())
	require.NoError(t, source.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(target)).Err())
	host, port, _ := strings.Cut(to.Addr, ":")
	moved := 0
	for {
		keys, err := source.ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		require.NoError(t, err)
		if len(keys) == 0 {
			break
		}
		require.NoError(t, source.Migrate(ctx, host, port, keys[0], 0, patience).Err())
		moved++
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%d keys were moved", moved)
	require.NoError(t, target.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", id(target)).Err())
	require.NoError(t, source.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", id(target)).Err())
}

// By default a cluster that has lost a slot answers for none: that is an outage like any other.
func TestAClusterThatIsDownCostsNoCallerItsValue(t *testing.T) {
	t.Parallel()
	s := cluster(t)
	replicas := s.fleet(3)
	keys := []string{"c0", "c1", "c2", "c3", "c4", "c5"}
	crowd := gather(t, replicas, keys, nil)
	time.Sleep(500 * time.Millisecond)
	victim := s.server("c0")
	id, err := redistest.Client(t, victim).Do(ctx, "CLUSTER", "MYID").Text()
	require.NoError(t, err)
	gone := []*redisserver.Server{victim}
	for _, server := range s.servers {
		nodes, err := redistest.Client(t, server).ClusterNodes(ctx).Result()
		require.NoError(t, err)
		if strings.Contains(nodes, "myself,slave "+id) {
			gone = append(gone, server)
		}
	}
	require.Len(t, gone, 2)
	crowd.lossy(func() {}, func() {
		for _, server := range gone {
			require.NoError(t, server.Kill())
		}
	})
	other := redistest.Client(t, s.servers[slices.IndexFunc(s.servers, func(server *redisserver.Server) bool { return server.Pid() != 0 })])
	require.Eventually(t, func() bool {
		err := other.Get(ctx, "any").Err()
		return err != nil && strings.HasPrefix(err.Error(), "CLUSTERDOWN")
	}, takeover, 10*tick)
	reads, refused := crowd.reads.Load(), crowd.refused.Load()
	time.Sleep(time.Second)
	assert.Greater(t, crowd.reads.Load(), reads)
	assert.Greater(t, crowd.refused.Load(), refused, "deletions say that they could not be done")
	for _, server := range gone {
		require.NoError(t, server.Restart()) // empty
	}
	require.Eventually(t, func() bool { return s.owner("{c0}") != "" }, takeover, 10*tick)
	up := time.Now()
	back := s.onSharedPath(replicas)
	t.Logf("on the shared path %v after the cluster was up; %v", back.Sub(up).Round(time.Millisecond), crowd)
	assert.Less(t, back.Sub(up), recovery)
	crowd.dismiss()
	assert.Less(t, time.Duration(crowd.longest.Load()), recovery, "a call")
	s.checkLeftovers()
}
