package redisstore_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/cachetest"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/traffic"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// undecided is when a history is too long to be decided.
const undecided = 20 * time.Second

// trouble is a server with something in front of it that happens again and again.
type trouble struct {
	server  *redisserver.Server
	proxy   *faultproxy.Proxy
	markers []string // one for each script, and HGET
}

// troubles are what can happen on the way to Redis, and how often. What takes longer than a step may is rarer, or the
// breakers let nothing through in between.
var troubles = map[string]struct {
	every time.Duration
	do    func(t *testing.T, x *trouble)
}{
	"undisturbed":                      {time.Second, func(*testing.T, *trouble) {}},
	"replies are lost":                 {often, on(faultproxy.Rule{Do: faultproxy.DropReply})},
	"replies never come":               {seldom, on(faultproxy.Rule{Do: faultproxy.StallReply})},
	"requests are lost":                {often, on(faultproxy.Rule{Do: faultproxy.DropRequest})},
	"requests are late":                {often, on(faultproxy.Rule{Do: faultproxy.Delay, For: 100 * time.Millisecond})},
	"requests come after their budget": {seldom, on(faultproxy.Rule{Do: faultproxy.Delay, For: 400 * time.Millisecond})},
	"connections break":                {often, func(_ *testing.T, x *trouble) { x.proxy.KillAll() }},
	"connections are forgotten":        {seldom, func(_ *testing.T, x *trouble) { x.proxy.HalfOpen() }},
	"the server is paused": {seldom, func(t *testing.T, x *trouble) {
		assert.NoError(t, x.server.Pause())
		time.Sleep(100*time.Millisecond + rand.N(300*time.Millisecond))
		assert.NoError(t, x.server.Resume())
	}},
}

const often, seldom = 100 * time.Millisecond, 500 * time.Millisecond

// on lets a fault happen to one of the next few sendings of one of the steps.
func on(r faultproxy.Rule) func(*testing.T, *trouble) {
	return func(_ *testing.T, x *trouble) {
		r := r
		r.Marker, r.Nth = x.markers[rand.N(len(x.markers))], 1+rand.N(3)
		x.proxy.On(r)
	}
}

// eachTrouble runs a test in each kind of trouble, which begins with begin and ends with the test.
func eachTrouble(t *testing.T, test func(t *testing.T, addr string, begin func())) {
	t.Helper()
	for name, what := range troubles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			x := &trouble{server: s, proxy: faultproxy.Start(t, s.Addr), markers: []string{"hget"}}
			for _, file := range []string{"begin.lua", "set.lua", "delete.lua"} {
				source, err := os.ReadFile(file)
				require.NoError(t, err)
				x.markers = append(x.markers, redis.NewScript(string(source)).Hash())
			}
			test(t, x.proxy.Addr, func() { x.begin(t, what.every, what.do) })
		})
	}
}

// begin makes trouble until the test ends, but not in the time in which its replicas end.
func (x *trouble) begin(t *testing.T, every time.Duration, do func(*testing.T, *trouble)) {
	over := make(chan struct{})
	var making sync.WaitGroup
	making.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(every/2 + rand.N(every)):
				do(t, x)
			}
		}
	})
	t.Cleanup(func() {
		close(over)
		making.Wait()
		x.proxy.Heal()
	})
}

// redisStores are stores with clients of their own, as processes have them.
func redisStores(t *testing.T, addr string, n int, change func(*redis.Options)) (stores []*redisstore.Store) {
	t.Helper()
	for range n {
		o := &redis.Options{Addr: addr}
		change(o)
		rdb := redis.NewClient(o)
		t.Cleanup(func() { assert.NoError(t, rdb.Close()) })
		stores = append(stores, redisstore.New(rdb, redisstore.Options{Prefix: prefix}))
	}
	return stores
}

// untried says that a step was not sent, since the breaker is open.
func untried(err error) bool { return errors.Is(err, redislock.ErrOpen) }

// Clients of the store see one register for each name, which only the numbers guard: whatever happens on the way.
func TestWhatClientsOfAStoreOnRedisSeeHasOneOrder(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		resent bool
		client func(*redis.Options)
	}{
		"sent once":  {false, func(o *redis.Options) { o.MaxRetries = -1 }},
		"sent again": {true, func(*redis.Options) {}}, // by go-redis
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			eachTrouble(t, func(t *testing.T, addr string, begin func()) {
				var stores []cache.Store
				for _, s := range redisStores(t, addr, 3, c.client) {
					stores = append(stores, s)
				}
				begin()
				h := traffic.Stores(t.Context(), traffic.Options{For: 2 * time.Second, Resent: c.resent, Untried: untried}, stores...)
				t.Log(h.Len(), "steps")
				require.NoError(t, h.Check(undecided))
				require.Positive(t, h.Len())
			})
		})
	}
}

// Callers of caches get what was valid at a moment after they asked: whatever happens on the way to Redis.
func TestWhatCallersOfAFleetOnRedisGetHasOneOrder(t *testing.T) {
	t.Parallel()
	eachTrouble(t, func(t *testing.T, addr string, begin func()) {
		replicas := witnessed(t, redisStores(t, addr, 3, func(*redis.Options) {}), cachetest.ChaosOptions{})
		begin()
		callersGetWhatIsValid(t, replicas)
	})
}

// The same with chaos in the processes themselves.
func TestWhatCallersOfAFleetInChaosOnRedisGetHasOneOrder(t *testing.T) {
	t.Parallel()
	s := serve(t)
	stores := redisStores(t, s.Addr, 3, func(*redis.Options) {})
	callersGetWhatIsValid(t, witnessed(t, stores, cachetest.ChaosOptions{
		Seed: 1, Refuse: .1, LoseReply: .1, Delay: .2, Hang: .02, Steal: .2, Cut: .05,
	}))
}

// witnessed has a cache for each store, with chaos between.
func witnessed(t *testing.T, stores []*redisstore.Store, o cachetest.ChaosOptions) (replicas []traffic.Replica) {
	t.Helper()
	for _, s := range stores {
		o.Seed++
		w := &traffic.Witness{Store: cachetest.NewChaos(s, o)}
		c, err := cache.New(w, cache.Options[traffic.Value]{Policy: minute, Lease: 200 * time.Millisecond})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, c.Close()) })
		replicas = append(replicas, traffic.Replica{Cache: c, Witness: w})
	}
	return replicas
}

func callersGetWhatIsValid(t *testing.T, replicas []traffic.Replica) {
	t.Helper()
	h := traffic.Caches(t.Context(), traffic.Options{
		For:     2 * time.Second,
		NoStale: true,
		Failed:  func(err error) { assert.NoError(t, err) },
	}, replicas...)
	t.Log(h.Len(), "steps")
	require.NoError(t, h.Check(undecided))
	require.Positive(t, h.Len())
}

func TestAChaosWithoutFaultsOnRedisKeepsTheContract(t *testing.T) {
	t.Parallel()
	s := serve(t)
	cachetest.TestStore(t, nil, func(t *testing.T) cache.Store {
		return cachetest.NewChaos(redisStores(t, s.Addr, 1, func(*redis.Options) {})[0], cachetest.ChaosOptions{})
	})
}
