package redislock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// rarely asks once a minute, so that nobody gets a lease but by being woken.
var rarely = recompute.Backoff{Min: time.Minute, Max: time.Minute, Jitter: 0.1}

func guard(t testing.TB, l recompute.Locker, o recompute.GuardOptions) *recompute.Guard {
	t.Helper()
	g, err := recompute.NewGuard(l, o)
	require.NoError(t, err)
	return g
}

// replicas are guards over lockers of their own, as processes have.
func replicas(t testing.TB, n int, o recompute.GuardOptions, client func() *redis.Client) (guards []*recompute.Guard) {
	t.Helper()
	for range n {
		guards = append(guards, guard(t, fenced(t, client()), o))
	}
	return guards
}

func TestAReleaseWakesThoseWhoWaitInEachProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	guards := replicas(t, 4, recompute.GuardOptions{TTL: long, Wait: 30 * time.Second, Retry: rarely}, func() *redis.Client { return redistest.Client(t, s) })
	var all sync.WaitGroup
	var fences []int64
	began := time.Now()
	for i := range 24 {
		all.Go(func() {
			assert.NoError(t, guards[i%4].Do(t.Context(), "key", func(_ context.Context, h *recompute.Held) error {
				fence, _ := h.Fence()
				fences = append(fences, fence) // the race detector would see two at once
				time.Sleep(5 * time.Millisecond)
				return nil
			}))
		})
	}
	all.Wait()
	assert.Less(t, time.Since(began), 20*time.Second, "nobody waited for the next question")
	assert.Len(t, fences, 24)
	assert.True(t, slices.IsSorted(fences))
}

func TestALockerThatIsClosedAsksNowAndThen(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t))
	l := must(c, redislock.Options{Budget: 5 * time.Second})
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	lease := acquire(t, l, "key", long)
	time.AfterFunc(50*time.Millisecond, func() { assert.NoError(t, lease.Release(t.Context())) })
	g := guard(t, l, recompute.GuardOptions{})
	require.NoError(t, g.Do(t.Context(), "key", func(context.Context, *recompute.Held) error { return nil }))
	_, stop := l.Wake(t.Context(), "key")
	stop()
}

func TestUncontendedNobodySubscribes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	g := replicas(t, 1, recompute.GuardOptions{}, func() *redis.Client { return redistest.Client(t, s) })[0]
	for range 5 {
		require.NoError(t, g.Do(t.Context(), "key", func(context.Context, *recompute.Held) error { return nil }))
	}
	assert.Empty(t, c.PubSubChannels(t.Context(), "*").Val())
}

// What the connection of the subscription loses is made good when it is back.
func TestWhoMissedAReleaseIsWokenWhenTheHubHearsAgain(t *testing.T) {
	t.Parallel()
	w := through(t)
	l := fenced(t, w.inside)
	lease := acquire(t, fenced(t, w.outside), "key", long)
	heard, stop := l.Wake(t.Context(), "key")
	defer stop()
	await := func(why string) {
		t.Helper()
		select {
		case <-heard:
		case <-time.After(20 * time.Second):
			require.FailNow(t, "not woken", why)
		}
	}
	await("when it hears for the first time")
	w.proxy.HalfOpen() // and nothing is heard any more
	require.NoError(t, lease.Release(t.Context()))
	await("after it noticed")
}

func TestAHandOffIsAFewCommandsHoweverManyProcessesWait(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const processes, rounds = 6, 15
	guards := replicas(t, processes, recompute.GuardOptions{TTL: long, Wait: time.Minute, Retry: rarely}, func() *redis.Client { return redistest.Client(t, s) })
	var all sync.WaitGroup
	begin := make(chan struct{})
	var done int
	var counter *redistest.Counter
	for i := range processes * 4 {
		all.Go(func() {
			<-begin
			for range rounds {
				assert.NoError(t, guards[i%processes].Do(t.Context(), "key", func(context.Context, *recompute.Held) error { done++; return nil }))
			}
		})
	}
	counter = redistest.Commands(t, s)
	close(begin)
	all.Wait()
	commands := counter.Stop()
	require.Equal(t, processes*4*rounds, done)
	perHandOff := float64(len(commands)) / float64(done)
	t.Logf("%.1f commands per hand-off between %d processes of 4", perHandOff, processes)
	// A release, a question of the one that is woken, and of each who comes: one, and one more where it begins to listen.
	assert.Less(t, perHandOff, 5.0)
}

// The process whose turn it is may have nobody any more who waits: then all others are woken.
func TestATurnThatNobodyTakesGoesToTheOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, gone, waits := fenced(t, redistest.Client(t, s)), fenced(t, redistest.Client(t, s)), fenced(t, redistest.Client(t, s))
	lease := acquire(t, holder, "key", long)
	_, leave := queue(t, gone)
	heard, stop := queue(t, waits)
	defer stop()
	assert.EqualValues(t, 2, redistest.Client(t, s).ZCard(t.Context(), "bellwether:queue:{key}").Val())
	leave()
	require.NoError(t, lease.Release(t.Context()))
	select {
	case <-heard:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "not woken")
	}
}

// A process that is killed says nothing to anybody, and is the first in the queue.
func TestTheSecondAsksWhenTheFirstHasDiedWhileItWaited(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	lease := acquire(t, fenced(t, c), "key", long)
	heard, stop := queue(t, fenced(t, redistest.Client(t, s)))
	defer stop()
	require.NoError(t, c.ZAdd(t.Context(), "bellwether:queue:{key}", redis.Z{Score: 1, Member: "dead"}).Err())
	require.NoError(t, lease.Release(t.Context()))
	released := time.Now()
	select {
	case <-heard:
		assert.GreaterOrEqual(t, time.Since(released), 50*time.Millisecond, "the first has its time")
	case <-time.After(20 * time.Second):
		require.FailNow(t, "not woken")
	}
	assert.EqualValues(t, 1, c.ZCard(t.Context(), "bellwether:queue:{key}").Val(), "and keeps its place until it has been granted")
	assert.Positive(t, c.PTTL(t.Context(), "bellwether:queue:{key}").Val(), "or should it die as well, for a while")
}

// It would have one more who asks for each hand-off.
func TestTheSecondDoesNotAskWhenTheFirstHasHadItsTurn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	holder := fenced(t, c)
	lease := acquire(t, holder, "key", long)
	heard, stop := queue(t, fenced(t, redistest.Client(t, s)))
	defer stop()
	for range 20 { // on a busy machine the turn may last too long
		others := []redis.Z{{Score: 1, Member: "first"}, {Score: 2, Member: "another"}}
		require.NoError(t, c.ZAdd(t.Context(), "bellwether:queue:{key}", others[:1]...).Err())
		require.NoError(t, lease.Release(t.Context()))
		released := time.Now()
		lease = acquire(t, holder, "key", long)
		require.NoError(t, c.ZAdd(t.Context(), "bellwether:queue:{key}", others...).Err())
		require.NoError(t, lease.Release(t.Context()))
		took := time.Since(released)
		time.Sleep(300 * time.Millisecond)
		if took < 50*time.Millisecond {
			assert.Empty(t, heard)
			return
		}
		if lease = acquire(t, holder, "key", long); len(heard) > 0 {
			<-heard
		}
		require.NoError(t, c.ZRem(t.Context(), "bellwether:queue:{key}", "another").Err())
	}
	t.Skip("the machine is too busy")
}

// Its last waiter may give up in the moment in which its turn comes.
func TestATurnThatItsWaiterDoesNotUseGoesToTheOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, first, waits := fenced(t, redistest.Client(t, s)), fenced(t, redistest.Client(t, s)), fenced(t, redistest.Client(t, s))
	lease := acquire(t, holder, "key", long)
	turn, leave := queue(t, first)
	heard, stop := queue(t, waits)
	defer stop()
	require.NoError(t, lease.Release(t.Context()))
	require.Eventually(t, func() bool { return len(turn) == 1 }, 20*time.Second, time.Millisecond)
	leave()
	select {
	case <-heard:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "not woken")
	}
}

func TestProcessesAreWokenInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lease := acquire(t, fenced(t, redistest.Client(t, s)), "key", long)
	guards := replicas(t, 5, recompute.GuardOptions{TTL: long, Wait: time.Minute, Retry: rarely}, func() *redis.Client { return redistest.Client(t, s) })
	c := redistest.Client(t, s)
	var all sync.WaitGroup
	var order []int
	for i, g := range guards {
		all.Go(func() {
			assert.NoError(t, g.Do(t.Context(), "key", func(context.Context, *recompute.Held) error { order = append(order, i); return nil }))
		})
		require.Eventually(t, func() bool { return c.ZCard(t.Context(), "bellwether:queue:{key}").Val() == int64(i+1) }, 20*time.Second, time.Millisecond)
	}
	assert.InDelta(t, time.Minute, c.PTTL(t.Context(), "bellwether:queue:{key}").Val(), float64(20*time.Second), "it ends by itself")
	time.Sleep(100 * time.Millisecond) // the last one listens
	require.NoError(t, lease.Release(t.Context()))
	all.Wait()
	assert.Len(t, order, 5)
	assert.True(t, slices.IsSorted(order), "%v", order)
}

// queue has a process wait, until it is in the queue.
func queue(t *testing.T, l *redislock.Locker) (heard <-chan struct{}, stop func()) {
	t.Helper()
	heard, stop = l.Wake(t.Context(), "key")
	select {
	case <-heard: // it listens
	case <-time.After(20 * time.Second):
		require.FailNow(t, "does not listen")
	}
	_, err := l.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, recompute.ErrHeld)
	return heard, stop
}

func TestASecondWaiterOfAProcessKeepsItsPlaceAmongThoseOfOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder, two, one := fenced(t, redistest.Client(t, s)), fenced(t, redistest.Client(t, s)), fenced(t, redistest.Client(t, s))
	lease := acquire(t, holder, "key", long)
	first, leave := queue(t, two)
	second, stop := two.Wake(t.Context(), "key")
	defer stop()
	other, stopOther := queue(t, one)
	defer stopOther()
	woken := func(c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(20 * time.Second):
			require.FailNow(t, "not woken")
		}
	}
	require.NoError(t, lease.Release(t.Context()))
	woken(first)
	lease = acquire(t, two, "key", long)
	leave()
	require.NoError(t, lease.Release(t.Context()))
	woken(second)
	time.Sleep(50 * time.Millisecond)
	assert.Empty(t, other, "it came later")
}

// In a bubble it is the year 2000, so a process in one would come before all others for ever.
func TestAProcessWhoseClockIsWrongHasItsTurnLikeAllOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	acquire(t, fenced(t, c), "key", long)
	came := time.Now().UnixMicro()
	synctest.Test(t, func(t *testing.T) {
		require.Less(t, time.Now().Year(), 2001)
		l := fenced(t, redistest.Client(t, s))
		_, stop := l.Wake(t.Context(), "key")
		defer stop()
		_, err := l.Acquire(t.Context(), "key", long)
		require.ErrorIs(t, err, recompute.ErrHeld)
	})
	queued := c.ZRangeWithScores(t.Context(), "bellwether:queue:{key}", 0, -1).Val()
	require.Len(t, queued, 1)
	assert.InDelta(t, came, queued[0].Score, float64(time.Minute.Microseconds()))
}
