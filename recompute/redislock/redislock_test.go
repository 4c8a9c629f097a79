package redislock_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/recomputetest"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

func TestRedisKeepsTheContractOfLocker(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, change := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract(t, func() redis.UniversalClient {
				o := &redis.Options{Addr: s.Addr}
				change(o)
				return redis.NewClient(o)
			})
		})
	}
}

func TestUsersWithoutScriptsKeepTheContractOfLocker(t *testing.T) {
	t.Parallel()
	for name, client := range steps {
		if name == "scripts" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user := client(t, redistest.Client(t, redistest.Start(t))).Options()
			contract(t, func() redis.UniversalClient {
				return redis.NewClient(&redis.Options{Addr: user.Addr, Username: user.Username, Password: user.Password})
			})
		})
	}
}

// On a cluster, a script whose keys are in several slots is refused.
func TestAClusterKeepsTheContractOfLocker(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--cluster-enabled", "yes")
	setup := redistest.Client(t, s)
	require.NoError(t, setup.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool { return strings.Contains(setup.ClusterInfo(t.Context()).Val(), "cluster_state:ok") }, 5*time.Second, 10*time.Millisecond)
	contract(t, func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{s.Addr}, ContextTimeoutEnabled: true})
	})
}

func TestARingKeepsTheContractOfLocker(t *testing.T) {
	t.Parallel()
	one, other := redistest.Start(t), redistest.Start(t)
	contract(t, func() redis.UniversalClient {
		return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": one.Addr, "other": other.Addr}, ContextTimeoutEnabled: true})
	})
}

// contract runs on clients that open returns.
func contract(t *testing.T, open func() redis.UniversalClient) {
	t.Helper()
	recomputetest.TestLocker(t, nil, func(t *testing.T) recompute.Locker {
		c := open()
		t.Cleanup(func() { assert.NoError(t, c.Close()) })
		return must(c, redislock.Options{Prefix: "bellwether:" + rand.Text(), Budget: 5 * time.Second, Channel: channel})
	})
}

func TestEachStepIsOneCommand(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := patient(redistest.Client(t, s))
	warm(t, l)
	counter := redistest.Commands(t, s)
	lease := acquire(t, l, "key", long)
	_, err := l.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, recompute.ErrHeld)
	require.NoError(t, lease.Extend(t.Context(), long))
	require.NoError(t, lease.Release(t.Context()))
	require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
	var seen []string
	for _, command := range counter.Stop() {
		seen = append(seen, strings.Join(strings.Fields(command)[:2], " "))
	}
	acquired, extended, released := "EVALSHA "+script(t, "acquire"), "EVALSHA "+script(t, "extend"), "EVALSHA "+script(t, "release")
	assert.Equal(t, []string{acquired, acquired, extended, released, released}, seen)
}

func TestTheFirstStepsOfAProcessAreOneCommandEachToo(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := patient(redistest.Client(t, s))
	counter := redistest.Commands(t, s)
	require.NoError(t, acquire(t, l, "key", long).Release(t.Context()))
	assert.Len(t, counter.Stop(), 2)
}

func TestAnEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := patient(redistest.Client(t, s))
	warm(t, l)
	counter := redistest.Commands(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Acquire(ctx, "key", long)
	require.Equal(t, context.Canceled, err)
	assert.Empty(t, counter.Stop())
}

func TestAllKeysHaveATTL(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	l := patient(c)
	lease := acquire(t, l, "key", 10*time.Second)
	keys := redistest.Keys(t, c)
	require.Len(t, keys, 1)
	for key, ttl := range keys {
		assert.Equal(t, "bellwether:lease:{key}", key)
		assert.InDelta(t, 10*time.Second, ttl, float64(time.Second))
	}
	require.NoError(t, lease.Extend(t.Context(), 20*time.Second))
	for _, ttl := range redistest.Keys(t, c) {
		assert.InDelta(t, 20*time.Second, ttl, float64(time.Second))
	}
	require.NoError(t, lease.Release(t.Context()))
	assert.Empty(t, redistest.Keys(t, c), "nothing stays behind")
}

func TestTTLsThatRedisWouldReadAsZeroAreRefused(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t))
	_, err := patient(c).Acquire(t.Context(), "key", time.Millisecond-1)
	require.ErrorContains(t, err, "at least 1ms")
	assert.Empty(t, redistest.Keys(t, c))
	lease := acquire(t, patient(c), "key", long)
	require.ErrorContains(t, lease.Extend(t.Context(), time.Nanosecond), "at least 1ms")
	for _, ttl := range redistest.Keys(t, c) {
		assert.Greater(t, ttl, long/2)
	}
}

// A token is compared whole: neither one that begins like ours nor one that ours begins with is ours.
func TestALeaseOfAnyOtherTokenIsNeitherExtendedNorReleased(t *testing.T) {
	t.Parallel()
	for how, client := range steps {
		c := redistest.Client(t, redistest.Start(t))
		l := patient(client(t, c))
		for name, other := range map[string]func(token string) string{
			"another's":    func(string) string { return "another" },
			"a longer one": func(token string) string { return token + "x" },
			"its head":     func(token string) string { return token[:len(token)-1] },
			"its tail":     func(token string) string { return token[1:] },
			"in lowercase": strings.ToLower,
			"empty":        func(string) string { return "" },
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				lease := acquire(t, l, name, long)
				key := "bellwether:lease:{" + name + "}"
				value := other(c.Get(t.Context(), key).Val())
				require.NoError(t, c.Set(t.Context(), key, value, 10*time.Second).Err())
				require.ErrorIs(t, lease.Extend(t.Context(), long), recompute.ErrLost)
				require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
				_, err := l.Acquire(t.Context(), name, long)
				require.ErrorIs(t, err, recompute.ErrHeld)
				assert.Equal(t, value, c.Get(t.Context(), key).Val())
				assert.LessOrEqual(t, c.PTTL(t.Context(), key).Val(), 10*time.Second)
			})
		}
	}
}

// A failover can lose a lease that had not been replicated.
func TestAVanishedLeaseIsNotRevivedNorTakenFromItsSuccessor(t *testing.T) {
	t.Parallel()
	for how, client := range steps {
		t.Run(how, func(t *testing.T) {
			c := redistest.Client(t, redistest.Start(t))
			l := patient(client(t, c))
			lost := acquire(t, l, "key", long)
			require.NoError(t, c.FlushAll(t.Context()).Err())
			require.ErrorIs(t, lost.Extend(t.Context(), long), recompute.ErrLost)
			require.Empty(t, locks(t, c))
			successor := acquire(t, l, "key", long)
			require.ErrorIs(t, lost.Extend(t.Context(), long), recompute.ErrLost)
			require.ErrorIs(t, lost.Release(t.Context()), recompute.ErrLost)
			require.NoError(t, successor.Release(t.Context()))
		})
	}
}

// Whatever stands at the key of a lease without being one must not lock the key out for ever.
func TestWhatHasNoTTLOrIsNoStringIsNotALease(t *testing.T) {
	t.Parallel()
	const key = "bellwether:lease:{key}"
	for how, client := range steps {
		c := redistest.Client(t, redistest.Start(t))
		l := patient(client(t, c))
		for name, put := range map[string]func(p redis.Pipeliner){
			"a string without a TTL": func(p redis.Pipeliner) { p.Set(t.Context(), key, "x", 0) },
			"a list":                 func(p redis.Pipeliner) { p.RPush(t.Context(), key, "x") },
			"a hash with a TTL":      func(p redis.Pipeliner) { p.HSet(t.Context(), key, "x", "y"); p.Expire(t.Context(), key, long) },
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				stand := func() {
					require.NoError(t, c.Del(t.Context(), key).Err())
					p := c.Pipeline()
					put(p)
					_, err := p.Exec(t.Context())
					require.NoError(t, err)
				}
				stand()
				lease := acquire(t, l, "key", long)
				require.Equal(t, []string{key}, locks(t, c))
				require.NoError(t, lease.Extend(t.Context(), long))
				stand()
				require.ErrorIs(t, lease.Extend(t.Context(), long), recompute.ErrLost)
				require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
				assert.EqualValues(t, 1, c.Exists(t.Context(), key).Val(), "and it isn't ours to remove")
			})
		}
	}
}
