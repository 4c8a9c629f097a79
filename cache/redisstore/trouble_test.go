package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plain gives a replica the default budget, as users have it.
func plain[V any](s *setup[V]) { s.store.Budget = 0 }

// Case 36: a caller's deadline holds, and so does its cancelling, whatever the client's options are and Redis does.
func TestACallerIsNotHeldByASilentRedis(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(*setup[string]){
		"default client":              func(*setup[string]) {},
		"client that keeps deadlines": func(s *setup[string]) { s.redis.ContextTimeoutEnabled = true },
		"client without retries":      func(s *setup[string]) { s.redis.MaxRetries = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			admin := redistest.Client(t, s)
			r := join(t, s.Addr, plain, options)
			get(t, r, "warm", (&origin[string]{value: "v"}).compute, cache.Computed)
			pause(t, admin, 2*time.Second)
			for _, key := range []string{"warm", "cold"} {
				began := time.Now()
				deadline, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				_, err := r.Lookup(deadline, key, never[string](t))
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Less(t, time.Since(began), 150*time.Millisecond, "deadline, %s", key)

				began = time.Now()
				cancelled, cancel := context.WithCancel(t.Context())
				time.AfterFunc(50*time.Millisecond, cancel)
				_, err = r.Lookup(cancelled, key, func(ctx context.Context) (string, error) { return "", ctx.Err() })
				require.ErrorIs(t, err, context.Canceled)
				assert.Less(t, time.Since(began), 150*time.Millisecond, "cancel, %s", key)
			}
			began := time.Now()
			v, err := r.GetOrCompute(t.Context(), "patient", (&origin[string]{value: "v"}).compute)
			require.NoError(t, err)
			assert.Equal(t, "v", v)
			t.Logf("%s: a patient caller had its value after %v", name, time.Since(began).Round(time.Millisecond))
			assert.Less(t, time.Since(began), 1900*time.Millisecond, "served while Redis is silent")
			require.NoError(t, admin.Ping(t.Context()).Err()) // the pause is over
			assert.Eventually(t, func() bool {                // as soon as the breaker has let a probe through
				got, err := r.Get(t.Context(), "warm")
				return err == nil && got.Outcome == cache.Hit
			}, 1200*time.Millisecond, tick)
		})
	}
}

// pause makes the server answer nobody for a while.
func pause(t *testing.T, admin *redis.Client, d time.Duration) {
	t.Helper()
	require.NoError(t, admin.Do(t.Context(), "CLIENT", "PAUSE", d.Milliseconds(), "ALL").Err())
}

// Case 39: a small pool is enough. Waiting keeps no connection.
func TestASmallPoolServesManyCallersOnManyKeys(t *testing.T) {
	t.Parallel()
	s := serve(t)
	replicas := fleet(t, s.Addr, 2, func(s *setup[string]) {
		s.redis.PoolSize, s.redis.PoolTimeout = 2, 100*time.Millisecond
	})
	v := gate("v")
	var asked []<-chan answer[string]
	for key := range 20 {
		for _, r := range replicas {
			asked = append(asked, ask(t, r, fmt.Sprint(key), v.compute))
		}
		<-v.running
	}
	close(v.open)
	for _, c := range asked {
		got := <-c
		require.NoError(t, got.err)
		assert.Equal(t, "v", got.Value)
	}
	assert.EqualValues(t, 20, v.runs.Load())
	for _, r := range replicas {
		assert.Zero(t, r.tally.failures("set"))
	}
}

// Case 38: Redis goes away while a value is computed.
func TestRedisKilledDuringAComputationCostsNoCallerItsValue(t *testing.T) {
	t.Parallel()
	s := serve(t)
	replicas := fleet(t, s.Addr, 2, plain[string])
	v := gate("v")
	leader := ask(t, replicas[0], "k", v.compute)
	<-v.running
	asked := []<-chan answer[string]{leader}
	for _, r := range replicas {
		for range 20 {
			asked = append(asked, ask(t, r, "k", v.compute))
		}
	}
	time.Sleep(100 * time.Millisecond)
	require.NoError(t, s.Kill())
	killed := time.Now()
	time.Sleep(100 * time.Millisecond)
	close(v.open)
	for _, c := range asked {
		got := <-c
		require.NoError(t, got.err)
		assert.Equal(t, "v", got.Value)
	}
	t.Logf("all had it %v after the kill", time.Since(killed).Round(time.Millisecond))
	assert.LessOrEqual(t, v.runs.Load(), int64(2), "one for each replica")
	assert.Less(t, time.Since(killed), 5*time.Second)
	require.Error(t, replicas[0].Delete(t.Context(), "k"))
	require.Error(t, replicas[0].Set(t.Context(), "k", "w"))

	// Redis comes back, empty, and so does everything.
	require.NoError(t, s.Restart())
	for _, r := range replicas {
		require.Eventually(t, r.tally.hears, patience, tick)
		require.Eventually(t, func() bool { // the breaker is closed
			_, err := r.Get(t.Context(), "k")
			return errors.Is(err, cache.ErrNotFound)
		}, patience, tick)
	}
	o := origin[string]{value: "new", takes: 300 * time.Millisecond}
	herd(t, replicas, 20, "k", "new", o.compute)
	assert.EqualValues(t, 1, o.runs.Load())
	for _, r := range replicas {
		get(t, r, "k", never[string](t), cache.Hit)
	}
}

// Case 38: Redis has never been there: each process computes for itself, once for all of its callers.
func TestWithoutRedisEachProcessStillMerges(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"refused": faultproxy.Refused(t), "silent": faultproxy.Silent(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replicas := []*replica[string]{enlist(t, addr, plain[string]), enlist(t, addr, plain[string])}
			o := origin[string]{value: "v", takes: 300 * time.Millisecond}
			began := time.Now()
			outcomes := herd(t, replicas, 100, "k", "v", o.compute)
			t.Logf("%s: 2 × 100 served after %v", name, time.Since(began).Round(time.Millisecond))
			assert.EqualValues(t, 2, o.runs.Load())
			assert.Equal(t, map[cache.Outcome]int{cache.Computed: 2, cache.Collapsed: 198}, outcomes)
			assert.Less(t, time.Since(began), 3*time.Second)
			_, err := replicas[0].Get(t.Context(), "k")
			require.Error(t, err)
			require.NotErrorIs(t, err, cache.ErrNotFound, "unknown is not the same as absent")
			require.Error(t, replicas[0].Delete(t.Context(), "k"), "case 51")
			for _, r := range replicas {
				began := time.Now()
				require.NoError(t, r.Close())
				assert.Less(t, time.Since(began), 2*time.Second, "Close on a server that is not there")
			}
		})
	}
}

// What can't work is told by New, all of it at once.
func TestOptionsThatCannotWorkAreReported(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: faultproxy.Refused(t)})
	defer rdb.Close()
	o := cache.Options[string]{Policy: minute}
	for _, bad := range []redisstore.Options{{Prefix: "a{b"}, {Prefix: "a}b"}, {Budget: -time.Second}, {Budget: time.Microsecond}, {MaxBytes: -1}} {
		_, err := cache.New(redisstore.New(rdb, bad), o)
		require.Error(t, err, "%+v", bad)
	}
	_, err := cache.New(redisstore.New(nil, redisstore.Options{}), o)
	require.ErrorContains(t, err, "client is nil")
	_, err = cache.New(redisstore.New(nil, redisstore.Options{Prefix: "{", MaxBytes: -1}), o)
	require.ErrorContains(t, err, "client is nil")
	require.ErrorContains(t, err, `redisstore: Options.Prefix: redislock: prefix is "{", must not hold braces`)
	require.ErrorContains(t, err, "MaxBytes")
}

// A key can be a secret, and errors end up in logs.
func TestErrorsOfTheStoreDoNotSayTheKey(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r := join(t, s.Addr, plain[string])
	require.NoError(t, s.Kill())
	_, err := r.Get(t.Context(), "token=secret")
	for _, err := range []error{err, r.Set(t.Context(), "token=secret", "v"), r.Delete(t.Context(), "token=secret")} {
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "secret")
	}
}
