package redisstore_test

import (
	"crypto/rand"
	"testing"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/cachetest"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/recomputetest"
	"github.com/redis/go-redis/v9"
)

// clients are the ways to reach Redis that the contracts are run on.
var clients = map[string]func(t *testing.T) redis.UniversalClient{
	"default client": func(t *testing.T) redis.UniversalClient { return redistest.Client(t, serve(t)) },
	"client that keeps deadlines": func(t *testing.T) redis.UniversalClient {
		return redistest.Client(t, serve(t), func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	},
	"RESP2 client": func(t *testing.T) redis.UniversalClient {
		return redistest.Client(t, serve(t), func(o *redis.Options) { o.Protocol = 2 })
	},
	"cluster client": func(t *testing.T) redis.UniversalClient {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{clusterOfOne(t).Addr}})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	},
	"cluster client of three primaries": func(t *testing.T) redis.UniversalClient { return closing(t, cluster(t).connect()) },
	"failover client":                   func(t *testing.T) redis.UniversalClient { return closing(t, watched(t).connect()) },
	"ring":                              func(t *testing.T) redis.UniversalClient { return closing(t, ringOf(serve(t), serve(t))) },
}

func closing(t *testing.T, rdb redis.UniversalClient) redis.UniversalClient {
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestTheStoreKeepsItsContract(t *testing.T) {
	t.Parallel()
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			rdb := client(t)
			cachetest.TestStore(t, nil, func(*testing.T) cache.Store {
				store := redisstore.New(rdb, redisstore.Options{Prefix: prefix, Budget: patience})
				if _, single := rdb.(*redis.Client); !single {
					// A cluster has no one clock. So its failures are announced without a date, as no more than a reason
					// to look; the rest of watching is tested by herds.
					return struct {
						cache.Store
						cache.Elector
					}{store, store}
				}
				return store
			})
		})
	}
}

func TestTheStoresLockerKeepsItsContract(t *testing.T) {
	t.Parallel()
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			rdb := client(t)
			recomputetest.TestLocker(t, nil, func(*testing.T) recompute.Locker {
				space := prefix + ":" + rand.Text() // the properties share names of keys
				return redisstore.New(rdb, redisstore.Options{Prefix: space, Budget: patience}).Locker()
			})
		})
	}
}
