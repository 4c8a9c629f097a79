package redislock_test

import (
	"math"
	"strconv"
	"strings"
	"sync"
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

const fenceKey = "bellwether:fence:{key}"

// number takes the lease of "key", gives it back and returns its fence.
func number(t testing.TB, l recompute.Locker) int64 {
	t.Helper()
	lease := acquire(t, l, "key", long)
	defer func() { require.NoError(t, lease.Release(t.Context())) }()
	return fenceOf(t, lease)
}

func fenceOf(t testing.TB, lease recompute.Lease) int64 {
	t.Helper()
	require.Implements(t, (*recompute.Fenced)(nil), lease)
	fence := lease.(recompute.Fenced).Fence()
	require.Positive(t, fence)
	require.Less(t, fence, int64(1)<<53)
	return fence
}

// steps are the ways in which a locker takes its steps.
var steps = map[string]func(t testing.TB, admin *redis.Client) *redis.Client{
	"scripts":      func(_ testing.TB, admin *redis.Client) *redis.Client { return admin },
	"transactions": transactions,
	"delex":        conditional("delex"),
	"delifeq":      conditional("delifeq"),
}

// What stands in the key of the number may be anything, and must not be what all numbers after it go by.
func TestANumberThatCannotHaveBeenGrantedCountsForNothing(t *testing.T) {
	t.Parallel()
	for name, client := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := redistest.Client(t, redistest.Start(t))
			l := fenced(t, client(t, admin))
			for _, stands := range []string{"inf", "-inf", "nan", "1e300", "0x1fffffffffffff", "-1", " 12", "9007199254740991", "9223372036854775807", "99999999999999999999"} {
				require.NoError(t, admin.Set(t.Context(), fenceKey, stands, time.Minute).Err())
				assert.InDelta(t, time.Now().UnixMicro(), number(t, l), float64(time.Minute/time.Microsecond), stands)
			}
			require.NoError(t, admin.Set(t.Context(), fenceKey, "9007199254740990", time.Minute).Err())
			assert.EqualValues(t, 1<<53-1, number(t, l))
		})
	}
}

func TestAFenceOnlyGrows(t *testing.T) {
	t.Parallel()
	for name, client := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := redistest.Client(t, redistest.Start(t))
			l := fenced(t, client(t, admin))
			last := number(t, l)
			higher := func(why string) {
				t.Helper()
				n := number(t, l)
				require.Greater(t, n, last, why)
				last = n
			}
			for range 50 {
				higher("one after the other")
			}
			require.NoError(t, admin.FlushAll(t.Context()).Err())
			higher("although all data was lost")
			ahead := last + int64(time.Hour/time.Microsecond)
			require.NoError(t, admin.Set(t.Context(), fenceKey, ahead, time.Minute).Err())
			higher("although the clock was set back by an hour")
			assert.Equal(t, ahead+1, last)
			require.NoError(t, admin.Del(t.Context(), fenceKey).Err())
			last = 0
			require.NoError(t, admin.HSet(t.Context(), fenceKey, "what", "ever").Err())
			higher("although something else stood there")
			require.NoError(t, admin.Set(t.Context(), fenceKey, "what ever", 0).Err())
			higher("although it was no number")
			assert.InDelta(t, time.Now().UnixMicro(), last, float64(time.Minute/time.Microsecond))
			for key, ttl := range redistest.Keys(t, admin) {
				assert.Positive(t, ttl, key)
			}
		})
	}
}

func TestAFenceGrowsAlsoBetweenLockersThatTakeTheirStepsInOtherWays(t *testing.T) {
	t.Parallel()
	admin := redistest.Client(t, redistest.Start(t))
	lockers := []recompute.Locker{fenced(t, admin), fenced(t, as(t, admin, "-@scripting"))}
	plain := patient(admin)
	last := int64(0)
	for i := range 20 {
		held := acquire(t, lockers[i%2], "key", long)
		for _, other := range append(lockers, plain) {
			_, err := other.Acquire(t.Context(), "key", long)
			require.ErrorIs(t, err, recompute.ErrHeld)
		}
		fence := fenceOf(t, held)
		require.Greater(t, fence, last)
		last = fence
		require.NoError(t, held.Release(t.Context()))
		require.NoError(t, acquire(t, plain, "key", long).Release(t.Context()))
	}
}

// The reply is lost, go-redis asks again: one lease, one number.
func TestALostReplyTakesNoSecondNumber(t *testing.T) {
	t.Parallel()
	w := through(t)
	l := fenced(t, w.inside)
	warm(t, l)
	number(t, l)
	for range 5 {
		hits := w.proxy.On(faultproxy.Rule{Marker: script(t, "acquire"), Nth: 1, Do: faultproxy.DropReply})
		w.proxy.On(faultproxy.Rule{Marker: script(t, "acquire"), Nth: 2, Do: faultproxy.Delay, For: 100 * time.Millisecond})
		before := w.outside.Get(t.Context(), fenceKey).Val()
		var taken string
		var look sync.WaitGroup
		look.Go(func() {
			for taken = before; taken == before; time.Sleep(time.Millisecond) {
				taken = w.outside.Get(t.Context(), fenceKey).Val()
			}
		})
		lease := acquire(t, l, "key", long)
		look.Wait()
		require.Equal(t, 1, hits.Count())
		assert.Equal(t, taken, strconv.FormatInt(fenceOf(t, lease), 10))
		require.NoError(t, lease.Release(t.Context()))
		w.proxy.Heal()
	}
}

// Even if the number is gone when the request comes again, it gets one that is in order.
func TestARepeatedRequestWhoseNumberIsGoneGetsAHigherOne(t *testing.T) {
	t.Parallel()
	w := through(t)
	l := fenced(t, w.inside)
	warm(t, l)
	last := number(t, l)
	w.proxy.On(faultproxy.Rule{Marker: script(t, "acquire"), Nth: 1, Do: faultproxy.DropReply})
	w.proxy.On(faultproxy.Rule{Marker: script(t, "acquire"), Nth: 2, Do: faultproxy.Delay, For: 300 * time.Millisecond})
	var gone sync.WaitGroup
	gone.Go(func() {
		for w.outside.Exists(t.Context(), "bellwether:lease:{key}").Val() == 0 {
			time.Sleep(time.Millisecond)
		}
		assert.NoError(t, w.outside.Del(t.Context(), fenceKey).Err())
	})
	lease := acquire(t, l, "key", long)
	gone.Wait()
	assert.Greater(t, fenceOf(t, lease), last)
	require.NoError(t, lease.Release(t.Context()))
}

func TestWhoeverLosesTakesNoNumber(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t))
	l := fenced(t, c)
	lease := acquire(t, l, "key", long)
	for range 10 {
		_, err := l.Acquire(t.Context(), "key", long)
		require.ErrorIs(t, err, recompute.ErrHeld)
	}
	assert.Equal(t, strconv.FormatInt(fenceOf(t, lease), 10), c.Get(t.Context(), fenceKey).Val())
}

func TestAFencedStepIsOneCommandToo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := fenced(t, redistest.Client(t, s))
	warm(t, l)
	counter := redistest.Commands(t, s)
	number(t, l)
	assert.Len(t, counter.Stop(), 2)
}

func TestOnlyTheNumberStaysBehind(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t))
	l := fenced(t, c)
	number(t, l)
	keys := redistest.Keys(t, c)
	require.Len(t, keys, 1)
	assert.InDelta(t, time.Hour+long, keys[fenceKey], float64(10*time.Second))
}

// A server out of memory grants nothing, and takes no lease for granted.
func TestWithoutMemoryForTheNumberThereIsNoLease(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t))
	l := fenced(t, c)
	warm(t, l)
	require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := l.Acquire(t.Context(), "key", long)
	require.ErrorContains(t, err, "OOM")
	noLock(t, c, 0)
}

func TestOptionsOfALockerThatCanNotWorkAreRefused(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: "localhost:0"})
	defer c.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for want, o := range map[string]redislock.Options{
		"redislock: Options.Prefix is \"a{b}\"": {Prefix: "a{b}"},
		"Budget is -1s":                         {Budget: -time.Second},
		"Budget is 999µs":                       {Budget: time.Millisecond - time.Microsecond},
		"Replicas is -1":                        {Replicas: -1},
	} {
		_, err := redislock.New(c, o)
		assert.ErrorContains(t, err, want)
	}
	_, err := redislock.New(nil, redislock.Options{})
	require.ErrorContains(t, err, "client is nil")
	_, err = redislock.New((*redis.Client)(nil), redislock.Options{Prefix: "{"})
	require.ErrorContains(t, err, "client is nil")
	require.ErrorContains(t, err, "braces", "all faults at once")
	_, err = redislock.New(ring, redislock.Options{Replicas: 1})
	require.ErrorContains(t, err, "ring")
	for _, o := range []redislock.Options{{}, {Budget: time.Millisecond}, {Replicas: 3}, {Prefix: strings.Repeat("p", math.MaxUint8)}} {
		_, err := redislock.New(c, o)
		require.NoError(t, err)
	}
}
