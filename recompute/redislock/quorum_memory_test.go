package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
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

const markerKey = "bellwether:member"

// amnesia are the ways in which a server forgets leases, or may have.
var amnesia = map[string]func(t testing.TB, e *ensemble, i int){
	"restarted empty": func(t testing.TB, e *ensemble, i int) {
		require.NoError(t, e.servers[i].Kill())
		require.NoError(t, e.servers[i].Restart())
	},
	"flushed": func(t testing.TB, e *ensemble, i int) { require.NoError(t, e.outside[i].FlushAll(t.Context()).Err()) },
	// What it saved last is not what it knew last: here it is put in place of that.
	"restarted with an old snapshot": func(t testing.TB, e *ensemble, i int) {
		marker := e.outside[i].Get(t.Context(), markerKey).Val()
		require.NotEmpty(t, marker)
		require.NoError(t, e.servers[i].Kill())
		require.NoError(t, e.servers[i].Restart())
		insist(t, func() error { return e.outside[i].Set(t.Context(), markerKey, marker, 0).Err() })
	},
}

// The holder has two of three servers, one of which forgets it: with the third, which never knew, that would be a majority.
func TestAServerThatMayHaveForgottenALeaseHasNoVoteForAsLongAsOneCouldLast(t *testing.T) {
	t.Parallel()
	for name, forget := range amnesia {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ttl = 3 * time.Second
			e, held := heldByTwo(t, ttl)
			forget(t, e, 1)
			other := e.open(t, redislock.QuorumOptions{Budget: 5 * time.Second, Longest: ttl})
			asked := 0
			for time.Since(held) < ttl {
				lease, err := other.Acquire(t.Context(), "key", ttl)
				if now := time.Now(); err == nil && now.Sub(held) < ttl {
					_ = lease
					t.Fatalf("a second holder after %v", now.Sub(held))
				}
				asked++
				time.Sleep(10 * time.Millisecond)
			}
			require.Greater(t, asked, 5)
			insist(t, func() error { return nilUnlessHeld(other, t, ttl) })
		})
	}
}

// nilUnlessHeld asks until there is an answer that is not ErrHeld.
func nilUnlessHeld(l recompute.Locker, t testing.TB, ttl time.Duration) error {
	for {
		_, err := l.Acquire(t.Context(), "key", ttl)
		if !errors.Is(err, recompute.ErrHeld) && !errors.Is(err, redislock.ErrQuorum) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// heldByTwo returns three servers, the first two of which have granted "key" at the time that it returns; the third can be asked now.
func heldByTwo(t testing.TB, ttl time.Duration) (*ensemble, time.Time) {
	t.Helper()
	e := startEnsemble(t, 3)
	o := redislock.QuorumOptions{Budget: 5 * time.Second, Longest: ttl}
	acquire(t, e.open(t, o), "found", ttl)
	first := quorum(t, o, []string{e.servers[0].Addr, e.servers[1].Addr, faultproxy.Refused(t)})
	held := time.Now()
	acquire(t, first, "key", ttl)
	require.Equal(t, 2, e.holders(t, "key"))
	return e, held
}

// The control of the test above: with a vote, the server that forgot makes a second holder.
func TestWithAVoteAServerThatForgotMakesASecondHolder(t *testing.T) {
	t.Parallel()
	const ttl = 20 * time.Second
	e, held := heldByTwo(t, ttl)
	require.NoError(t, e.servers[1].Kill())
	require.NoError(t, e.servers[1].Restart())
	other := e.open(t, redislock.QuorumOptions{Budget: 5 * time.Second, Longest: ttl})
	_, err := other.Acquire(t.Context(), "key", ttl)
	require.ErrorIs(t, err, recompute.ErrHeld)
	e.mark(t, 1, "bellwether", "0 0")
	require.Eventually(t, func() bool { // what the first try got of it may still be on its way back
		_, err := other.Acquire(t.Context(), "key", ttl)
		return err == nil
	}, soon, 10*time.Millisecond)
	require.Less(t, time.Since(held), ttl)
}

func TestServersThatRestartOneAfterTheOtherAreNoNewSet(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	e.learned(t, q)
	require.NoError(t, e.outside[0].FlushAll(t.Context()).Err())
	lease := acquire(t, q, "other", long)
	require.NoError(t, lease.Release(t.Context()))
	require.Eventually(t, func() bool { return e.outside[0].Exists(t.Context(), markerKey).Val() == 1 }, soon, time.Millisecond)
	time.Sleep(1100 * time.Millisecond)
	for _, c := range e.outside[1:] {
		require.NoError(t, c.FlushAll(t.Context()).Err())
	}
	_, err := q.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, redislock.ErrQuorum)
	require.ErrorContains(t, err, "has no vote for a while")
	require.Zero(t, e.holders(t, "key"))
}

// Nothing tells this from a new set. It is in the doc of Quorum.
func TestServersThatAllLoseTheirDataTogetherAreANewSet(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	q := e.open(t, patience)
	acquire(t, q, "key", long)
	time.Sleep(50 * time.Millisecond)
	for _, c := range e.outside {
		require.NoError(t, c.FlushAll(t.Context()).Err())
	}
	acquire(t, q, "key", long)
}

func TestANewSetThatIsNotCompleteBeginsAfterTheLongestLease(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	const longest = 1500 * time.Millisecond
	q := quorum(t, redislock.QuorumOptions{Budget: 5 * time.Second, Longest: longest}, []string{e.servers[0].Addr, e.servers[1].Addr, faultproxy.Refused(t)})
	began := time.Now()
	_, err := q.Acquire(t.Context(), "key", longest)
	require.ErrorIs(t, err, redislock.ErrQuorum)
	require.NoError(t, nilUnlessHeld(q, t, longest))
	assert.GreaterOrEqual(t, time.Since(began), longest)
}

func TestAFleetThatStartsWithANewSetFindsOneHolder(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			e := startEnsemble(t, n)
			var fleet sync.WaitGroup
			var granted atomic.Int64
			for range 6 {
				q := e.open(t, patience)
				fleet.Go(func() {
					_, err := q.Acquire(t.Context(), "key", long)
					if err == nil {
						granted.Add(1)
					} else {
						assert.ErrorIs(t, err, recompute.ErrHeld)
					}
				})
			}
			fleet.Wait()
			assert.EqualValues(t, 1, granted.Load())
		})
	}
}

// Without the right to ask for it, a server's run id is not known; that it lost its data shows all the same.
func TestWithoutInfoOnlyAServerThatLostItsDataIsRecognised(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3)
	var clients []redis.UniversalClient
	for _, admin := range e.outside {
		clients = append(clients, as(t, admin, "-info"))
	}
	q, err := redislock.NewQuorum(clients, patience)
	require.NoError(t, err)
	require.NoError(t, acquire(t, q, "key", long).Release(t.Context()))
	for _, c := range e.outside {
		assert.Regexp(t, `^ 0 \d+$`, c.Get(t.Context(), markerKey).Val())
	}
	require.NoError(t, acquire(t, e.open(t, patience), "key", long).Release(t.Context()), "for one who may ask they are the same")
	for _, c := range e.outside { // and from then on others are not
		require.Eventually(t, func() bool {
			return regexp.MustCompile(`^\w{40} 0 \d+$`).MatchString(c.Get(t.Context(), markerKey).Val())
		}, soon, time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond)
	for _, c := range e.outside[:2] {
		require.NoError(t, c.FlushAll(t.Context()).Err())
	}
	_, err = q.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, redislock.ErrQuorum)
	for key := range redistest.Keys(t, e.outside[0]) {
		assert.Equal(t, markerKey, key, "it granted nothing")
	}
}

func TestAServerWhoseMarkerIsNoneIsNew(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(context.Context, *redis.Client) error{
		"another string": func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, markerKey, "x", 0).Err() },
		"no string": func(ctx context.Context, c *redis.Client) error {
			return errors.Join(c.Del(ctx, markerKey).Err(), c.RPush(ctx, markerKey, "x").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startEnsemble(t, 3)
			const longest = 3 * time.Second
			q := e.open(t, redislock.QuorumOptions{Budget: 5 * time.Second, Longest: longest})
			acquire(t, q, "key", longest)
			for _, c := range e.outside[:2] {
				require.NoError(t, spoil(t.Context(), c))
			}
			_, err := q.Acquire(t.Context(), "other", longest)
			require.ErrorIs(t, err, redislock.ErrQuorum)
			require.ErrorContains(t, err, "has no vote for a while")
			require.NoError(t, nilUnlessHeld(q, t, longest), "it has its vote again")
		})
	}
}
