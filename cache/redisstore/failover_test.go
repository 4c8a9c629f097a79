package redisstore_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// takeover is the longest that servers may take to replace one of them.
	takeover = 30 * time.Second
	// recovery is the longest that a fleet may take to be on the shared path again after that.
	recovery = 5 * time.Second
)

// standins are servers that stand in for each other.
type standins struct {
	t       *testing.T
	connect func() redis.UniversalClient      // as a process of the fleet does
	owner   func(key string) (address string) // who has it, as the servers say; "" while they are not sure
	servers []*redisserver.Server
}

func TestAClusterThatFailsOverCostsNoCallerItsValue(t *testing.T) {
	t.Parallel()
	cluster(t, "--cluster-require-full-coverage", "no").failOver(3)
}

func TestSentinelsThatFailOverCostNoCallerItsValue(t *testing.T) {
	t.Parallel()
	watched(t).failOver(1)
}

func cluster(t *testing.T, args ...string) standins {
	t.Helper()
	c := redistest.Cluster(t, args...)
	connect := func() redis.UniversalClient { return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()}) }
	return standins{t, connect, c.Owner, c.Nodes}
}

func watched(t *testing.T) standins {
	t.Helper()
	w := redistest.Watched(t)
	connect := func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: w.Name, SentinelAddrs: w.Addrs()})
	}
	return standins{t, connect, func(string) string { return w.Primary() }, w.Nodes}
}

// server returns the one that has key.
func (s standins) server(key string) *redisserver.Server {
	s.t.Helper()
	addr := s.owner("{" + key + "}")
	i := slices.IndexFunc(s.servers, func(server *redisserver.Server) bool { return server.Addr == addr })
	require.GreaterOrEqual(s.t, i, 0, "%q has %q", addr, key)
	return s.servers[i]
}

// fleet starts n replicas with the default budget. The first keeps no last known values, and is more patient, so that a busy machine
// is not taken for a server that is away.
func (s standins) fleet(n int) []*replica[int64] {
	s.t.Helper()
	replicas := make([]*replica[int64], n)
	for i := range replicas {
		replicas[i] = found(s.t, s.connect(), s.member(i))
	}
	for _, r := range replicas {
		require.Eventually(s.t, r.tally.hears, patience, tick, "no announcements")
	}
	return replicas
}

func (standins) member(i int) *setup[int64] {
	return arrange([]func(*setup[int64]){plain[int64], func(s *setup[int64]) {
		if i == 0 {
			s.cache.Near, s.store.Budget = -1, 600*time.Millisecond
		}
	}})
}

// failOver kills a primary, and then stops another for longer than it takes to replace it, under load, and looks at what callers
// notice. The one that was stopped comes back and thinks that it is still the primary.
func (s standins) failOver(primaries int) {
	t := s.t
	replicas := s.fleet(3)
	var changing, still []string
	owners := make(map[*redisserver.Server]bool)
	for i := range 6 {
		changing, still = append(changing, fmt.Sprint("c", i)), append(still, fmt.Sprint("s", i))
		owners[s.server(changing[i])] = true
	}
	require.Len(t, owners, primaries, "the keys are not spread")
	crowd := gather(t, replicas, changing, still)
	time.Sleep(500 * time.Millisecond)

	killed := s.server("c0")
	s.strike(crowd, killed, killed.Kill)
	if primaries > 1 { // or two are left
		crowd.doubtful(func() { s.comeBack(killed, killed.Restart) })
	}
	stopped := s.server("c0")
	s.strike(crowd, stopped, stopped.Pause)
	crowd.doubtful(func() { s.comeBack(stopped, stopped.Resume) })
	s.onSharedPath(replicas)

	crowd.dismiss()
	t.Log(crowd)
	assert.Less(t, time.Duration(crowd.longest.Load()), recovery, "a call")
	s.checkLeftovers()
}

// strike takes down the server that has the key c0 and waits until another has its place, and the fleet shares.
func (s standins) strike(crowd *crowd, victim *redisserver.Server, down func() error) {
	t := s.t
	t.Helper()
	spared := slices.DeleteFunc(slices.Collect(maps.Keys(crowd.rows)), func(key string) bool { return key[0] == 'c' || s.server(key) == victim })
	crowd.spares(spared, func() {
		began := time.Now()
		crowd.lossy(func() { s.keep(victim, "c0") }, func() { require.NoError(t, down()) })
		require.Eventually(t, func() bool { return !slices.Contains([]string{"", victim.Addr}, s.owner("{c0}")) }, takeover, 10*tick)
		replaced := time.Now()
		back := s.onSharedPath(crowd.replicas)
		t.Logf("replaced after %v, on the shared path %v later; %v", replaced.Sub(began).Round(time.Millisecond), back.Sub(replaced).Round(time.Millisecond), crowd)
		assert.Less(t, back.Sub(replaced), recovery)
	})
}

// comeBack brings a server back and waits until it follows another.
func (s standins) comeBack(server *redisserver.Server, up func() error) {
	s.t.Helper()
	require.NoError(s.t, up())
	require.Eventually(s.t, func() bool {
		_, follows, ok := s.replication(server)
		return ok && follows
	}, takeover, 10*tick)
}

// keep returns once all that the owner of key has confirmed is on the servers that may replace it.
func (s standins) keep(owner *redisserver.Server, key string) {
	s.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: owner.Addr})
	defer rdb.Close()
	conn := rdb.Conn() // WAIT is about the connection's own writes, and so about all before them
	defer conn.Close()
	require.NoError(s.t, conn.Set(ctx, "mark:{"+key+"}", "", time.Minute).Err())
	followers, _, _ := s.replication(owner)
	require.Positive(s.t, followers)
	n, err := conn.Wait(ctx, followers, patience/3).Result()
	require.NoError(s.t, err)
	require.EqualValues(s.t, followers, n)
}

// onSharedPath waits until the fleet computes new keys once, and all who wait are told of the value as soon as it is there. It returns
// since when that is so.
func (s standins) onSharedPath(replicas []*replica[int64]) (since time.Time) {
	s.t.Helper()
	for deadline := time.Now().Add(takeover); time.Now().Before(deadline); {
		since = time.Now()
		if s.shares(replicas) {
			return since
		}
	}
	require.Fail(s.t, "the fleet does not share")
	return since
}

// shares looks whether a few new keys are computed once each. Those who miss an announcement look when the lease could have run out.
func (s standins) shares(replicas []*replica[int64]) bool {
	var wg sync.WaitGroup
	var failed atomic.Bool
	for range 4 {
		wg.Go(func() {
			o := origin[int64]{value: 1, takes: 300 * time.Millisecond}
			began := time.Now()
			herd(s.t, replicas, 5, rand.Text(), 1, o.compute)
			if o.runs.Load() != 1 || time.Since(began) > 1500*time.Millisecond {
				failed.Store(true)
			}
		})
	}
	wg.Wait()
	return !failed.Load()
}

// replication says how many servers follow one, and whether it follows another and has what that one has.
func (s standins) replication(server *redisserver.Server) (followers int, follows, ok bool) {
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	info, err := rdb.Info(ctx, "replication").Result()
	if err != nil {
		return 0, false, false
	}
	_, rest, _ := strings.Cut(info, "connected_slaves:")
	_, err = fmt.Sscan(rest, &followers)
	return followers, strings.Contains(info, "role:slave") && strings.Contains(info, "master_link_status:up"), err == nil
}

// checkLeftovers looks at all primaries.
func (s standins) checkLeftovers() {
	for _, server := range s.servers {
		if _, follows, ok := s.replication(server); ok && !follows {
			checkLeftovers(s.t, server.Addr)
		}
	}
}
