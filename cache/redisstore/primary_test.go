package redisstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Case 52: a client may be set up to read from replicas, which may be late. The cache asks primaries all the same: what was
// deleted is gone, and what was computed is there, at once.
func TestTheCacheAsksPrimariesThoughItsClientPrefersReplicas(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (standins, redis.UniversalClient){
		"cluster": func(t *testing.T) (standins, redis.UniversalClient) {
			s := cluster(t)
			var addrs []string
			for _, server := range s.servers {
				addrs = append(addrs, server.Addr)
			}
			return s, redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ReadOnly: true, RouteRandomly: true})
		},
		"sentinels": func(t *testing.T) (standins, redis.UniversalClient) {
			w := redistest.Watched(t)
			nodes := []redis.ClusterNode{{Addr: w.Nodes[0].Addr}, {Addr: w.Nodes[1].Addr}, {Addr: w.Nodes[2].Addr}}
			return standins{t: t, servers: w.Nodes}, redis.NewClusterClient(&redis.ClusterOptions{
				// What NewFailoverClusterClient does, whose goroutines never end.
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
					return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: nodes}}, nil
				},
				RouteRandomly: true,
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, rdb := open(t)
			r := found(t, rdb, arrange[string](nil))
			require.Eventually(t, r.tally.hears, patience, tick)
			for _, key := range strange { // case 47: their slots are in doubt, and that would be an error
				get(t, r, key, (&origin[string]{value: "v"}).compute, cache.Computed)
				get(t, r, key, never[string](t), cache.Hit)
				require.NoError(t, r.Delete(ctx, key))
				_, err := r.Get(ctx, key)
				require.ErrorIs(t, err, cache.ErrNotFound)
				require.NoError(t, r.Set(ctx, key, "w"))
				assert.Equal(t, "w", get(t, r, key, never[string](t), cache.Hit))
			}
			replicas := 0
			for _, server := range s.servers {
				if _, follows, _ := s.replication(server); !follows {
					continue
				}
				replicas++
				stats, err := redistest.Client(t, server).Info(ctx, "commandstats").Result()
				require.NoError(t, err)
				for _, command := range []string{"eval", "evalsha", "hget"} {
					assert.NotContains(t, strings.ToLower(stats), "cmdstat_"+command+":")
				}
			}
			assert.Positive(t, replicas)
		})
	}
}
