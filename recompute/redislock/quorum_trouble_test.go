package redislock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// voting is how asking for a lease shows on the wire.
func voting(t testing.TB) string { return redislock.VotingHash() }

// learned has all servers learn all scripts, also those that are not waited for, and lets what was under way end.
func (e *ensemble) learned(t testing.TB, q *redislock.Quorum) {
	t.Helper()
	complete := 0
	for range 20 {
		lease := acquire(t, q, "warm", long)
		time.Sleep(20 * time.Millisecond)
		if e.holders(t, "warm") == len(e.servers) { // one that is late may have refused, or been given up
			complete++
		}
		insist(t, func() error { return lease.Extend(t.Context(), long) })
		time.Sleep(20 * time.Millisecond)
		_ = lease.Release(t.Context()) // it may have been late
		e.await(t, "warm", 0)
		if complete == 2 {
			return
		}
	}
	t.Fatal("the machine is too busy for a lease on all servers")
}

// await waits until so many servers hold key, and their answers have arrived.
func (e *ensemble) await(t testing.TB, key string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return e.holders(t, key) == n }, soon, time.Millisecond)
	time.Sleep(20 * time.Millisecond)
}

// troubles are what happens to a server, and end with the test.
var troubles = map[string]func(t testing.TB, e *ensemble, i int){
	"killed": func(t testing.TB, e *ensemble, i int) { require.NoError(t, e.servers[i].Kill()) },
	"frozen": func(t testing.TB, e *ensemble, i int) {
		require.NoError(t, e.servers[i].Pause())
		t.Cleanup(func() { _ = e.servers[i].Resume() })
	},
	"half open": func(_ testing.TB, e *ensemble, i int) {
		e.proxies[i].HalfOpen()
		e.proxies[i].On(faultproxy.Rule{Do: faultproxy.DropRequest})
	},
	"partitioned": func(_ testing.TB, e *ensemble, i int) { e.proxies[i].On(faultproxy.Rule{Do: faultproxy.StallReply}) },
}

func TestAMinorityInTroubleIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		for name, trouble := range troubles {
			for client, change := range clients {
				if client == "client that never tries again" || n == 5 && client != "default client" {
					continue // they add nothing but servers
				}
				t.Run(fmt.Sprintf("%d of %d %s, %s", n/2, n, name, client), func(t *testing.T) {
					t.Parallel()
					e := startEnsemble(t, n)
					q := e.open(t, patience, change)
					e.learned(t, q)
					for i := range n / 2 {
						trouble(t, e, i)
					}
					began := time.Now()
					lease, err := q.Acquire(t.Context(), "key", 20*time.Second)
					require.NoError(t, err)
					require.NoError(t, lease.Extend(t.Context(), 20*time.Second))
					_, err = q.Acquire(t.Context(), "key", 20*time.Second)
					require.ErrorIs(t, err, recompute.ErrHeld)
					require.NoError(t, lease.Release(t.Context()))
					assert.Less(t, time.Since(began), patience.Budget/2)
				})
			}
		}
	}
}

func TestAMajorityInTroubleCostsNoMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startEnsemble(t, 3)
			q := e.open(t, redislock.QuorumOptions{})
			e.learned(t, q)
			held := acquire(t, q, "held", long)
			trouble(t, e, 1)
			trouble(t, e, 2)
			timely(t, budget, func() {
				_, err := q.Acquire(t.Context(), "key", long)
				require.ErrorIs(t, err, redislock.ErrQuorum)
				require.NotErrorIs(t, err, recompute.ErrHeld)
			})
			require.Eventually(t, func() bool { return e.outside[0].Exists(t.Context(), "bellwether:lease:{key}").Val() == 0 }, soon, time.Millisecond)
			timely(t, budget, func() {
				err := held.Extend(t.Context(), long)
				require.ErrorIs(t, err, redislock.ErrQuorum)
				require.NotErrorIs(t, err, recompute.ErrLost, "nobody can tell")
			})
			require.ErrorIs(t, held.Release(t.Context()), redislock.ErrQuorum)
		})
	}
}

// One that never had the lease says no, so two of three can tell, and yet it is not known who has the lease.
func TestAQuorumThatIsSplitSaysHow(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	e.found(t, "bellwether")
	q := quorum(t, redislock.QuorumOptions{Budget: time.Second}, []string{faultproxy.Refused(t), e.proxies[1].Addr, e.proxies[2].Addr})
	warm(t, q)
	held := acquire(t, q, "held", long)
	troubles["frozen"](t, e, 1)
	err := held.Extend(t.Context(), long)
	require.ErrorIs(t, err, redislock.ErrQuorum)
	require.ErrorContains(t, err, "1 yes, 1 no, of 3 servers, and 2 must agree")
	require.ErrorContains(t, err, "server 1: ")
}

// A server that said nothing may have granted all the same, or may do so later.
func TestWhatAServerGrantsWithoutAnAnswerIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]faultproxy.Rule{
		"its answer is lost":      {Do: faultproxy.StallReply},
		"the question comes late": {Do: faultproxy.Delay, For: 2 * budget},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startEnsemble(t, 3)
			q := e.open(t, redislock.QuorumOptions{})
			e.learned(t, q)
			fault.Marker = voting(t)
			hits := []*faultproxy.Hits{e.proxies[1].On(fault), e.proxies[2].On(fault)}
			_, err := q.Acquire(t.Context(), "key", long)
			require.ErrorIs(t, err, redislock.ErrQuorum)
			require.Equal(t, []int{1, 1}, []int{hits[0].Count(), hits[1].Count()})
			time.Sleep(fault.For)
			require.Eventually(t, func() bool { return e.holders(t, "key") == 0 }, soon, time.Millisecond)
			for until := time.Now().Add(2 * budget); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
				require.Zero(t, e.holders(t, "key"), "a lease came late")
			}
			for _, p := range e.proxies {
				p.Heal()
			}
			acquire(t, q, "key", long)
		})
	}
}

// What a server grants after the others have decided belongs to the lease: it is extended and released with it.
func TestAServerThatAnswersLateHasItsShare(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	e.proxies[2].On(faultproxy.Rule{Marker: voting(t), Nth: 1, Do: faultproxy.Delay, For: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	lease, err := q.Acquire(ctx, "key", long)
	cancel() // which was for the question
	require.NoError(t, err)
	require.Equal(t, 2, e.holders(t, "key"))
	e.await(t, "key", 3)
	require.NoError(t, e.servers[0].Kill())
	require.NoError(t, lease.Extend(t.Context(), long))
	require.NoError(t, lease.Release(t.Context()))
	require.Zero(t, e.holders(t, "key"))
}

func TestWhatAServerGrantsAfterTheReleaseIsGivenBack(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	counter := redistest.Commands(t, e.servers[2])
	hits := e.proxies[2].On(faultproxy.Rule{Marker: voting(t), Nth: 1, Do: faultproxy.Delay, For: 300 * time.Millisecond})
	lease := acquire(t, q, "key", long)
	require.NoError(t, lease.Release(t.Context()))
	require.Equal(t, 1, hits.Count())
	time.Sleep(500 * time.Millisecond)
	require.Zero(t, e.holders(t, "key"))
	var did []string
	for _, command := range counter.Stop() {
		if strings.HasPrefix(command, "EVALSHA") {
			did = append(did, strings.Fields(command)[1])
		}
	}
	require.Equal(t, []string{voting(t), script(t, "release")}, did, "it was granted, and then given back")
}

func TestAQuestionOfAQuorumThatItsCallerGaveUpLeavesNoLease(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	for _, p := range e.proxies[1:] {
		p.On(faultproxy.Rule{Marker: voting(t), Do: faultproxy.Delay, For: 300 * time.Millisecond})
	}
	began := time.Now()
	_, err := q.Acquire(within(t, 50*time.Millisecond), "key", long)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Less(t, time.Since(began), 250*time.Millisecond)
	time.Sleep(300 * time.Millisecond)
	require.Eventually(t, func() bool { return e.holders(t, "key") == 0 }, soon, time.Millisecond)
}

func TestALeaseIsLostWithAMajorityAndKeptWithOne(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 5)
	q := e.open(t, patience)
	e.learned(t, q)
	lease := acquire(t, q, "key", long)
	e.await(t, "key", 5)
	for i, c := range e.outside {
		require.NoError(t, c.Del(t.Context(), "bellwether:lease:{key}").Err())
		if i < 2 {
			require.NoError(t, lease.Extend(t.Context(), long))
			continue
		}
		require.ErrorIs(t, lease.Extend(t.Context(), long), recompute.ErrLost)
		require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
		break
	}
}

// N1 and N3b of a known implementation: it waits for ever when one of two is down, and is in its own way when it asks again.
func TestAServerThatIsBusyForAWhileIsWaitedForWhereItsVoteIsNeeded(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	require.NoError(t, e.servers[2].Kill())
	e.proxies[0].On(faultproxy.Rule{Marker: voting(t), Nth: 1, Do: faultproxy.Delay, For: 300 * time.Millisecond})
	lease := acquire(t, q, "key", long)
	require.NoError(t, lease.Release(t.Context()))
}

func TestALostAnswerOfAServerIsAskedForAgainAndIsNoVoteAgainstItself(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	for _, p := range e.proxies {
		p.On(faultproxy.Rule{Marker: voting(t), Nth: 1, Do: faultproxy.DropReply})
	}
	lease, err := q.Acquire(t.Context(), "key", long)
	require.NoError(t, err)
	require.NoError(t, lease.Release(t.Context()))
}

func TestALeaseThatIsGrantedTooLateIsRefusedAndGivenBack(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	o := patience
	o.MinLeft = 4900 * time.Millisecond
	q := e.open(t, o)
	e.learned(t, q)
	for _, p := range e.proxies[1:] {
		p.On(faultproxy.Rule{Marker: voting(t), Nth: 1, Do: faultproxy.Delay, For: 100 * time.Millisecond})
	}
	_, err := q.Acquire(t.Context(), "key", 5*time.Second)
	require.ErrorContains(t, err, "too little is left")
	require.NotErrorIs(t, err, recompute.ErrHeld)
	require.Eventually(t, func() bool { return e.holders(t, "key") == 0 }, soon, time.Millisecond)

	lease := acquire(t, q, "other", long)
	e.await(t, "other", 3)
	for _, p := range e.proxies[1:] {
		p.On(faultproxy.Rule{Marker: script(t, "extend"), Nth: 1, Do: faultproxy.Delay, For: 100 * time.Millisecond})
	}
	err = lease.Extend(t.Context(), 5*time.Second)
	require.ErrorContains(t, err, "too little is left")
	require.NotErrorIs(t, err, recompute.ErrLost)
}

// A server in trouble costs its own breaker, so the others are asked as before, and it is asked again when it is back.
func TestAServerThatComesBackVotesAgain(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, redislock.QuorumOptions{Longest: time.Second, Budget: time.Second}, func(o *redis.Options) { o.DialerRetries = 1 })
	require.NoError(t, acquire(t, q, "found", time.Second).Release(t.Context()))
	require.NoError(t, e.servers[0].Kill())
	for range 5 {
		lease, err := q.Acquire(t.Context(), "key", time.Second)
		require.NoError(t, err)
		require.NoError(t, lease.Release(t.Context()))
	}
	require.NoError(t, e.servers[0].Restart())
	require.NoError(t, e.servers[1].Kill())
	deadline := time.Now().Add(20 * time.Second)
	for {
		lease, err := q.Acquire(t.Context(), "key", time.Second)
		if err == nil {
			require.NoError(t, lease.Release(t.Context()))
			return
		}
		require.NotErrorIs(t, err, recompute.ErrHeld)
		require.True(t, time.Now().Before(deadline), err)
		time.Sleep(50 * time.Millisecond)
	}
}

// One who waits and gets only a part of the servers tells nobody when it gives that back, or those who wait would wake each other.
func TestOnlyTheReleaseOfALeaseWakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	lease := acquire(t, q, "key", long)
	require.Eventually(t, func() bool { return e.holders(t, "key") == 3 }, soon, time.Millisecond)
	woken, stop := q.Wake(t.Context(), "key")
	defer stop()
	for _, c := range e.outside {
		require.Eventually(t, func() bool { return c.PubSubNumSub(t.Context(), "bellwether:leases").Val()["bellwether:leases"] == 1 }, soon, time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	for range len(e.servers) { // the hubs can hear
		select {
		case <-woken:
		default:
		}
	}
	require.NoError(t, e.outside[2].Del(t.Context(), "bellwether:lease:{key}").Err())
	_, err := q.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, recompute.ErrHeld)
	require.Eventually(t, func() bool { return e.holders(t, "key") == 2 }, soon, time.Millisecond, "the part was given back")
	select {
	case <-woken:
		t.Fatal("woken though the lease is held")
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, lease.Release(t.Context()))
	select {
	case <-woken:
	case <-time.After(soon):
		t.Fatal("not woken though the lease was released")
	}
}
