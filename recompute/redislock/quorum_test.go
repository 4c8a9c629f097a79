package redislock_test

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/recomputetest"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// ensemble is the servers of a quorum, each behind a proxy, and clients that go past it.
type ensemble struct {
	servers []*redisserver.Server
	proxies []*faultproxy.Proxy
	outside []*redis.Client
}

func startEnsemble(t testing.TB, n int) *ensemble {
	t.Helper()
	e := new(ensemble)
	for range n {
		s := redistest.Start(t)
		e.servers = append(e.servers, s)
		e.proxies = append(e.proxies, faultproxy.Start(t, s.Addr))
		e.outside = append(e.outside, redistest.Client(t, s))
	}
	return e
}

// open returns a quorum of the servers, through the proxies, for the time of the test.
func (e *ensemble) open(t testing.TB, o redislock.QuorumOptions, change ...func(*redis.Options)) *redislock.Quorum {
	t.Helper()
	var addrs []string
	for _, p := range e.proxies {
		addrs = append(addrs, p.Addr)
	}
	return quorum(t, o, addrs, change...)
}

// quorum returns a quorum of the servers at addrs for the time of the test.
func quorum(t testing.TB, o redislock.QuorumOptions, addrs []string, change ...func(*redis.Options)) *redislock.Quorum {
	t.Helper()
	var clients []redis.UniversalClient
	for _, addr := range addrs {
		clients = append(clients, to(t, addr, change...))
	}
	q, err := redislock.NewQuorum(clients, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// found makes the servers a set that has been in use, under a prefix.
func (e *ensemble) found(t testing.TB, prefix string) {
	t.Helper()
	for i := range e.outside {
		e.mark(t, i, prefix, "0 0")
	}
}

// mark has one of the servers know since when it has kept its data and the highest number, under a prefix.
func (e *ensemble) mark(t testing.TB, i int, prefix, knows string) {
	t.Helper()
	run := regexp.MustCompile(`run_id:(\w+)`).FindStringSubmatch(e.outside[i].Info(t.Context(), "server").Val())
	require.Len(t, run, 2)
	require.NoError(t, e.outside[i].Set(t.Context(), prefix+":member", run[1]+" "+knows, 0).Err())
}

// patience is for tests of other things than budgets, on a busy machine.
var patience = redislock.QuorumOptions{Budget: 5 * time.Second}

// holders returns on how many servers key is held.
func (e *ensemble) holders(t testing.TB, key string) (n int) {
	t.Helper()
	for _, c := range e.outside {
		n += int(c.Exists(t.Context(), "bellwether:lease:{"+key+"}").Val())
	}
	return n
}

func TestAQuorumKeepsTheContractOfLocker(t *testing.T) {
	t.Parallel()
	for _, w := range []struct{ of, gone int }{{of: 3}, {of: 5, gone: 2}} {
		t.Run(fmt.Sprintf("%d servers, %d of them gone", w.of, w.gone), func(t *testing.T) {
			e := startEnsemble(t, w.of)
			var addrs []string
			for i, p := range e.proxies {
				addrs = append(addrs, p.Addr)
				if i < w.gone {
					addrs[i] = faultproxy.Refused(t)
				}
			}
			recomputetest.TestLocker(t, nil, func(t *testing.T) recompute.Locker {
				o := redislock.QuorumOptions{Prefix: rand.Text(), Budget: 5 * time.Second, MinLeft: time.Millisecond}
				if w.gone > 0 {
					e.found(t, o.Prefix)
				}
				q := quorum(t, o, addrs)
				warm(t, q) // connections and scripts take longer than the shortest lease of the suite, on a busy machine
				return q
			})
		})
	}
}

func TestAQuorumThatCanNotWorkIsRefused(t *testing.T) {
	t.Parallel()
	at := func(addr string) redis.UniversalClient { return to(t, addr) }
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	a, b, c, d := at("a:1"), at("b:1"), at("c:1"), at("d:1")
	for says, clients := range map[string][]redis.UniversalClient{
		"a quorum of 0 servers":         {},
		"a quorum of 1 servers":         {a},
		"a quorum of 2 servers":         {a, b},
		"a quorum of 4 servers":         {a, b, c, d},
		"0 and 2 of the quorum":         {a, b, a},
		"1 and 2 of the quorum":         {a, b, at("b:1")},
		"client 1 of the quorum is nil": {a, nil, b},
		"client 2 of the quorum is nil": {a, b, (*redis.Client)(nil)},
		"is a *redis.ClusterClient":     {a, b, cluster},
	} {
		q, err := redislock.NewQuorum(clients, redislock.QuorumOptions{})
		require.ErrorContains(t, err, says)
		assert.Nil(t, q)
	}
	for says, o := range map[string]redislock.QuorumOptions{
		"QuorumOptions.Prefix is": {Prefix: "{x}"},
		"Budget is 1µs":           {Budget: time.Microsecond},
		"MinLeft is -1s":          {MinLeft: -time.Second},
		"MinLeft is 1m0s":         {MinLeft: time.Minute},
		"Longest is 10ms":         {Longest: 10 * time.Millisecond},
	} {
		_, err := redislock.NewQuorum([]redis.UniversalClient{a, b, c}, o)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "\n", "one fault is one")
	}
	sentinels := func(name string) redis.UniversalClient {
		c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: name, SentinelAddrs: []string{"127.0.0.1:1"}})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	_, err := redislock.NewQuorum([]redis.UniversalClient{sentinels("x"), sentinels("y"), sentinels("z")}, redislock.QuorumOptions{})
	require.NoError(t, err, "servers behind sentinels are different ones")
}

// The token of each share is its own, so the second way to a server finds it taken.
func TestAServerThatIsReachedInTwoWaysHasOneVote(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	acquire(t, e.open(t, patience), "found", long) // so that all have a vote
	twice := quorum(t, patience, []string{e.proxies[0].Addr, e.servers[0].Addr, faultproxy.Refused(t)})
	_, err := twice.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, recompute.ErrHeld)
}

func TestATTLThatAQuorumCanNotKeepIsRefused(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, redislock.QuorumOptions{Budget: 5 * time.Second, Longest: 10 * time.Second})
	for _, ttl := range []time.Duration{49 * time.Millisecond, 10*time.Second + 1} {
		_, err := q.Acquire(t.Context(), "key", ttl)
		require.ErrorContains(t, err, "must be from 50ms to 10s")
	}
	lease := acquire(t, q, "key", 10*time.Second)
	require.ErrorContains(t, lease.Extend(t.Context(), 11*time.Second), "must be from 50ms to 10s")
	require.NoError(t, lease.Release(t.Context()))
}

func TestALeaseOfAQuorumTakesTwoCommandsForEachServer(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	var counters []*redistest.Counter
	for _, s := range e.servers {
		counters = append(counters, redistest.Commands(t, s))
	}
	lease := acquire(t, q, "key", long)
	require.Eventually(t, func() bool { return e.holders(t, "key") == 3 }, soon, time.Millisecond)
	require.NoError(t, lease.Release(t.Context()))
	require.Eventually(t, func() bool { return e.holders(t, "key") == 0 }, soon, time.Millisecond)
	asked, raised, released := 0, 0, 0
	for _, c := range counters {
		for _, command := range c.Stop() {
			switch {
			case strings.Contains(command, script(t, "raise")), strings.Contains(command, "ARGV token, number"): // it may not have learned it
				raised++
			case strings.Contains(command, redislock.VotingHash()):
				asked++
			case strings.Contains(command, script(t, "release")):
				released++
			default:
				assert.Contains(t, command, "EXISTS") // ours
			}
		}
	}
	assert.GreaterOrEqual(t, raised, 2, "a majority is raised, and a third that answered by then")
	assert.LessOrEqual(t, raised, 3)
	assert.Equal(t, 3, asked)
	assert.Equal(t, 3, released)
}
