package redislock_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// The number that each server would give next is far from the others', as with clocks that differ by hours.
func (e *ensemble) skew(t testing.TB) {
	t.Helper()
	for i := range e.outside {
		e.mark(t, i, "bellwether", fmt.Sprint("0 ", time.Now().Add(time.Duration(len(e.outside)-i)*time.Hour).UnixMicro()))
	}
}

// rotate takes the lease of "key" again and again, each time with another server out of reach, and returns the fences.
func rotate(t testing.TB, e *ensemble, rounds int) (fences []int64) {
	t.Helper()
	acquire(t, e.open(t, patience), "found", long)
	e.skew(t)
	var quorums []recompute.Locker
	for missing := range e.proxies {
		var addrs []string
		for _, p := range e.proxies {
			addrs = append(addrs, p.Addr)
		}
		addrs[missing] = faultproxy.Refused(t)
		quorums = append(quorums, quorum(t, patience, addrs, func(o *redis.Options) { o.DialerRetries = 1 }))
	}
	for i := range rounds {
		fences = append(fences, number(t, quorums[(len(quorums)-1+i)%len(quorums)])) // without the last first
	}
	return fences
}

func TestTheFenceOfAQuorumOnlyGrowsWhicheverServerIsMissing(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		fences := rotate(t, startEnsemble(t, n), 28)
		for i := 1; i < len(fences); i++ {
			require.Greater(t, fences[i], fences[i-1], "grant %d", i)
		}
	}
}

// The control of the test above: the highest number that a majority gives is not enough, it must be known to a majority.
func TestTheHighestFenceThatAMajorityGivesDoesNotAlwaysGrow(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	for _, p := range e.proxies {
		p.On(faultproxy.Rule{Marker: script(t, "raise"), Do: faultproxy.Answer, Say: ":1"})
		p.On(faultproxy.Rule{Marker: sourceOf(t, "raise"), Do: faultproxy.Answer, Say: ":1"})
	}
	fences := rotate(t, e, 6)
	grows := true
	for i := 1; i < len(fences); i++ {
		grows = grows && fences[i] > fences[i-1]
	}
	assert.False(t, grows, "%v", fences)
}

// sourceOf is how a script shows on the wire before a server knows it.
func sourceOf(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name + ".lua")
	require.NoError(t, err)
	return string(text)
}

func TestTheFenceOfALeaseOfAQuorumStaysAndIsKnownToAMajority(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	e.skew(t)
	lease := acquire(t, q, "key", long)
	fence := fenceOf(t, lease)
	require.Eventually(t, func() bool {
		known := 0
		for _, c := range e.outside {
			marker := strings.Fields(c.Get(t.Context(), markerKey).Val())
			if n, _ := strconv.ParseInt(marker[2], 10, 64); n >= fence {
				known++
			}
		}
		return known >= 2
	}, soon, time.Millisecond)
	require.NoError(t, lease.Extend(t.Context(), long))
	require.Equal(t, fence, fenceOf(t, lease))
	require.NoError(t, lease.Release(t.Context()))
	require.Greater(t, number(t, q), fence)
}

// One that was paused between the two rounds, for longer than its lease, must not raise what is another's by now.
func TestOnlyTheHolderRaisesTheFence(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	for _, p := range e.proxies {
		for _, marker := range []string{script(t, "raise"), sourceOf(t, "raise")} { // the last server may not have learned it yet
			p.On(faultproxy.Rule{Marker: marker, Nth: 1, Do: faultproxy.Delay, For: 500 * time.Millisecond})
		}
	}
	_, err := q.Acquire(t.Context(), "key", 200*time.Millisecond)
	require.ErrorIs(t, err, recompute.ErrLost)
	require.NotErrorIs(t, err, recompute.ErrHeld)
}

// The highest number is known to the first two servers. One of them forgets it, the other can't be reached: what the third and the one that
// forgot would give is lower.
func TestANumberThatAServerForgotIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	const longest = 10 * time.Second
	e := startEnsemble(t, 3)
	o := redislock.QuorumOptions{Budget: 5 * time.Second, Longest: longest}
	require.NoError(t, acquire(t, e.open(t, o), "found", longest).Release(t.Context()))
	e.skew(t)
	without := func(missing int) *redislock.Quorum {
		var addrs []string
		for i, s := range e.servers {
			addrs = append(addrs, s.Addr)
			if i == missing {
				addrs[i] = faultproxy.Refused(t)
			}
		}
		return quorum(t, o, addrs, func(o *redis.Options) { o.DialerRetries = 1 })
	}
	taken := func(q *redislock.Quorum) (fence int64) {
		lease, err := q.Acquire(t.Context(), "key", longest)
		require.NoError(t, err)
		time.Sleep(50 * time.Millisecond) // who answers late is told too
		require.NoError(t, lease.Release(t.Context()))
		return fenceOf(t, lease)
	}
	first := taken(without(2))
	require.NoError(t, e.servers[1].Kill())
	require.NoError(t, e.servers[1].Restart())
	_, err := without(0).Acquire(t.Context(), "key", longest)
	require.ErrorIs(t, err, redislock.ErrQuorum)
	e.mark(t, 1, "bellwether", fmt.Sprint(time.Now().Add(-longest).UnixMilli(), " 0?")) // it is time for its vote
	lease, err := without(0).Acquire(t.Context(), "key", longest)
	if err == nil {
		t.Fatalf("a fence went back: %d, then %d", first, fenceOf(t, lease))
	}
	require.ErrorIs(t, err, redislock.ErrQuorum)
	require.ErrorContains(t, err, "server 1: ")
	require.Eventually(t, func() bool { return e.holders(t, "key") == 0 }, soon, time.Millisecond)
	second := taken(e.open(t, o))
	require.Greater(t, second, first)
	require.Greater(t, taken(without(0)), second, "the one that forgot has been told")
}

// withOneEmptied returns three servers, the second of which has lost its data and has its vote again.
func withOneEmptied(t testing.TB, longest time.Duration) (*ensemble, redislock.QuorumOptions) {
	t.Helper()
	e, o := startEnsemble(t, 3), redislock.QuorumOptions{Budget: 5 * time.Second, Longest: longest}
	q := e.open(t, o)
	insist(t, func() error {
		lease, err := q.Acquire(t.Context(), "found", longest)
		if err == nil {
			_ = lease.Release(t.Context())
		}
		return err
	})
	e.skew(t)
	e.forget(t, 1, longest)
	return e, o
}

// forget empties a server and lets it have its vote again.
func (e *ensemble) forget(t testing.TB, i int, longest time.Duration) {
	t.Helper()
	require.NoError(t, e.outside[i].FlushAll(t.Context()).Err())
	e.mark(t, i, "bellwether", fmt.Sprint(time.Now().Add(-longest).UnixMilli(), " 0?"))
}

// forgetful are the servers that do not know what numbers were given.
func (e *ensemble) forgetful(t testing.TB) (indexes []int) {
	t.Helper()
	for i, c := range e.outside {
		if strings.HasSuffix(c.Get(t.Context(), markerKey).Val(), "?") {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

func TestAServerThatForgotNumbersIsToldThemAlsoIfItAnswersLate(t *testing.T) {
	t.Parallel()
	e, o := withOneEmptied(t, 10*time.Second)
	e.proxies[1].On(faultproxy.Rule{Marker: "eval", Nth: 1, Do: faultproxy.Delay, For: 500 * time.Millisecond})
	lease := acquire(t, e.open(t, o), "key", 10*time.Second)
	require.Contains(t, e.outside[1].Get(t.Context(), markerKey).Val(), "?", "the others were enough")
	knows := fmt.Sprint(fenceOf(t, lease))
	require.Eventually(t, func() bool { return strings.HasSuffix(e.outside[1].Get(t.Context(), markerKey).Val(), " "+knows) }, soon, time.Millisecond)
	require.NoError(t, lease.Release(t.Context()))
}

// Who would know is not there. It is waited for, but not for ever.
func TestAServerThatForgotNumbersCountsAllTheSameAfterAWhile(t *testing.T) {
	t.Parallel()
	const longest = 3 * time.Second
	e, o := withOneEmptied(t, longest)
	q := quorum(t, o, []string{faultproxy.Refused(t), e.servers[1].Addr, e.servers[2].Addr}, func(o *redis.Options) { o.DialerRetries = 1 })
	began := time.Now()
	_, err := q.Acquire(t.Context(), "key", longest)
	require.ErrorIs(t, err, redislock.ErrQuorum)
	require.ErrorContains(t, err, "server 1: redislock: the server had lost its data")
	require.NoError(t, nilUnlessHeld(q, t, longest))
	require.GreaterOrEqual(t, time.Since(began), longest/2)
}

// What was saved may be old, but no number is lower than it.
func TestNumbersThatServersHaveSavedAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	for i := range e.outside {
		saved := fmt.Sprint("otherrun 0 ", time.Now().Add(time.Hour).UnixMicro())
		require.NoError(t, e.outside[i].Set(t.Context(), markerKey, saved, 0).Err())
	}
	require.Greater(t, number(t, q), time.Now().Add(time.Hour-time.Minute).UnixMicro())
}

// Each lease is asked for on other servers, of which now and then one has forgotten everything and has its vote again: never so many that
// most have.
func TestTheFenceOfAQuorumOnlyGrowsWhicheverServersAreMissingOrForget(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		seed := rand.Uint64()
		dice, refused := rand.New(rand.NewPCG(seed, 0)), []string{faultproxy.Refused(t), faultproxy.Refused(t)}
		e, o := startEnsemble(t, n), redislock.QuorumOptions{Budget: 5 * time.Second, Longest: long}
		e.found(t, "bellwether")
		e.skew(t)
		var quorums []*redislock.Quorum
		for range 8 {
			var addrs []string
			for _, s := range e.servers {
				addrs = append(addrs, s.Addr)
			}
			for i, missing := range dice.Perm(n)[:dice.IntN(n/2+1)] {
				addrs[missing] = refused[i]
			}
			quorums = append(quorums, quorum(t, o, addrs, func(o *redis.Options) { o.DialerRetries, o.MaxRetries = 1, -1 }))
		}
		var last int64
		granted, doubted := 0, 0
		for i := range 80 {
			if forgetful := e.forgetful(t); len(forgetful) < n/2 && dice.IntN(4) == 0 {
				e.forget(t, dice.IntN(n), long)
			}
			lease, err := quorums[dice.IntN(len(quorums))].Acquire(t.Context(), "key", long)
			if err != nil {
				require.ErrorContains(t, err, "had lost its data")
				doubted++
				require.Eventually(t, func() bool { return e.holders(t, "key") == 0 }, soon, time.Millisecond)
				continue
			}
			granted++
			require.Greater(t, fenceOf(t, lease), last, "seed %d, %d servers, grant %d", seed, n, i)
			last = fenceOf(t, lease)
			require.NoError(t, lease.Release(t.Context()))
			require.Eventually(t, func() bool { return e.holders(t, "key") == 0 }, soon, time.Millisecond)
		}
		t.Logf("%d servers, seed %d: %d granted, %d not for want of a majority that remembers", n, seed, granted, doubted)
		require.Greater(t, granted, 10)
	}
}
