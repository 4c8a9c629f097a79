package redislock_test

import (
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/recompute"
)

// The number that each server would give next is far from the others', as with clocks that differ by hours.
func (e *ensemble) skew(t testing.TB, key string) {
	t.Helper()
	for i, c := range e.outside {
		ahead := time.Now().Add(time.Duration(len(e.outside)-i) * time.Hour).UnixMicro()
		require.NoError(t, c.Set(t.Context(), "bellwether:fence:{"+key+"}", ahead, time.Hour).Err())
	}
}

// rotate takes the lease of "key" again and again, each time with another server out of reach, and returns the fences.
func rotate(t testing.TB, e *ensemble, rounds int) (fences []int64) {
	t.Helper()
	acquire(t, e.open(t, patience), "found", long)
	e.skew(t, "key")
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
	e.skew(t, "key")
	lease := acquire(t, q, "key", long)
	fence := fenceOf(t, lease)
	require.Eventually(t, func() bool {
		known := 0
		for _, c := range e.outside {
			if n, _ := c.Get(t.Context(), fenceKey).Int64(); n >= fence {
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
