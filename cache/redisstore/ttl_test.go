package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/stale"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Cases 16, 53, 69: every key that is ever written has a TTL, at every moment.
func TestEveryKeyHasATTLAfterEveryStep(t *testing.T) {
	t.Parallel()
	s := serve(t)
	policy := stale.Policy{Fresh: time.Minute, WhileRevalidate: 10 * time.Minute, IfError: time.Hour, Negative: 5 * time.Second, Cooldown: 20 * time.Second}
	r := join(t, s.Addr, func(s *setup[string]) {
		s.cache.Policy, s.cache.Limit, s.cache.Lease = policy, 10*time.Second, time.Second
	})
	const memory = 16 * time.Second // Limit, Lease, and a margin of 5 s
	check := func(what, key string, want map[string]time.Duration) {
		t.Helper()
		got := redistest.Keys(t, r.rdb)
		for role, ttl := range want {
			assert.InDelta(t, ttl, got[redisKey(role, key)], float64(500*time.Millisecond), "%s: the %s of %s", what, role, key)
		}
		for redisKey, ttl := range got {
			assert.Positive(t, ttl, "%s: %q", what, redisKey)
		}
		assert.Len(t, got, len(want), what)
		require.NoError(t, r.rdb.FlushAll(t.Context()).Err())
	}
	look := func(key string, v string, err error) {
		_, _ = r.Lookup(t.Context(), key, func(context.Context) (string, error) { return v, err })
	}

	_, err := r.Lookup(t.Context(), "k", func(context.Context) (string, error) {
		check("while computing", "k", map[string]time.Duration{"l": time.Second, "f": memory})
		return "v", nil
	})
	require.NoError(t, err)
	look("k", "v", nil)
	check("computed", "k", map[string]time.Duration{"v": policy.Retain(), "f": memory})
	look("k", "", cache.ErrNotFound)
	check("not found", "k", map[string]time.Duration{"v": policy.Negative, "f": memory})
	look("k", "", assert.AnError)
	check("failed", "k", map[string]time.Duration{"f": policy.Cooldown})
	require.NoError(t, r.Delete(t.Context(), "k"))
	require.NoError(t, r.Set(t.Context(), "k", "v"))
	check("set", "k", map[string]time.Duration{"v": policy.Retain(), "f": time.Minute}) // a deletion is remembered for a minute
	require.NoError(t, r.Set(t.Context(), "k2", "v"))
	require.NoError(t, r.Delete(t.Context(), "k2"))
	check("deleted", "k2", map[string]time.Duration{"f": time.Minute})
	require.NoError(t, r.Delete(t.Context(), "k3", "k3"))
	check("deleted what was not there", "k3", map[string]time.Duration{"f": time.Minute})
	func() {
		defer func() { _ = recover() }()
		_, _ = r.Lookup(t.Context(), "k4", func(context.Context) (string, error) { panic("x") })
	}()
	check("panicked", "k4", map[string]time.Duration{"f": memory})
}

// Case 56: an entry outlives its freshness in Redis, or there would be nothing stale to serve; and it is gone in the end.
func TestAnEntryStaysForAllItsWindowsAndNoLonger(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r := join(t, s.Addr, func(s *setup[string]) {
		s.cache.Policy = stale.Policy{Fresh: 300 * time.Millisecond, IfError: 700 * time.Millisecond}
	})
	get(t, r, "k", (&origin[string]{value: "v"}).compute, cache.Computed)
	time.Sleep(350 * time.Millisecond)
	got, err := r.Lookup(t.Context(), "k", func(context.Context) (string, error) { return "", assert.AnError })
	require.NoError(t, err)
	assert.Equal(t, cache.Stale, got.Outcome)
	assert.Greater(t, got.Age, 300*time.Millisecond)
	time.Sleep(700 * time.Millisecond)
	assert.NotContains(t, redistest.Keys(t, r.rdb), redisKey("v", "k"))
}

// A shorter TTL than that of the entry before counts, unless another type's entry needs the key for longer.
func TestTheTTLIsThatOfTheLongestEntry(t *testing.T) {
	t.Parallel()
	s := serve(t)
	long := join[string](t, s.Addr)
	short := join(t, s.Addr, func(s *setup[string]) { s.cache.Policy.Fresh = time.Second })
	number := join(t, s.Addr, func(s *setup[int]) { s.cache.Policy.Fresh = time.Second })
	ttl := func() time.Duration { return redistest.Keys(t, long.rdb)[redisKey("v", "k")] }
	require.NoError(t, long.Set(t.Context(), "k", "v"))
	assert.Greater(t, ttl(), 50*time.Second)
	get(t, number, "k", (&origin[int]{}).compute, cache.Computed)
	assert.Greater(t, ttl(), 50*time.Second, "the string still needs it")
	require.NoError(t, short.Set(t.Context(), "k", "v"))
	assert.LessOrEqual(t, ttl(), time.Second)
	get(t, number, "short first", (&origin[int]{}).compute, cache.Computed)
	get(t, long, "short first", (&origin[string]{value: "v"}).compute, cache.Computed)
	assert.Greater(t, redistest.Keys(t, long.rdb)[redisKey("v", "short first")], 50*time.Second)

	row := join(t, s.Addr, func(s *setup[string]) {
		s.cache.Policy = stale.Policy{Fresh: 50 * time.Millisecond, IfError: time.Minute, Negative: time.Second}
	})
	get(t, row, "row", (&origin[string]{value: "v"}).compute, cache.Computed)
	time.Sleep(60 * time.Millisecond)
	_, err := row.Lookup(t.Context(), "row", func(context.Context) (string, error) { return "", cache.ErrNotFound })
	require.ErrorIs(t, err, cache.ErrNotFound)
	assert.LessOrEqual(t, redistest.Keys(t, row.rdb)[redisKey("v", "row")], time.Second)
}

// Case 55: what is stored together does not run out together.
func TestJitterSpreadsTheTTLs(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r := join(t, s.Addr, func(s *setup[int]) { s.cache.Policy.Jitter = 0.1 })
	const keys = 1000
	began := time.Now()
	for i := range keys {
		require.NoError(t, r.Set(t.Context(), fmt.Sprint(i), i))
	}
	var ttls []time.Duration
	_, err := r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range keys {
			p.PTTL(ctx, redisKey("v", fmt.Sprint(i)))
		}
		cmds, err := p.Exec(ctx)
		for _, cmd := range cmds {
			ttls = append(ttls, cmd.(*redis.DurationCmd).Val())
		}
		return err
	})
	require.NoError(t, err)
	took := time.Since(began).Seconds() // the first are older by that
	slices.Sort(ttls)
	require.Len(t, ttls, keys)
	assert.Greater(t, ttls[0].Seconds(), 53-took)
	assert.LessOrEqual(t, ttls[keys-1], time.Minute)
	for _, tenth := range []int{1, 3, 5, 7, 9} { // of the way from 54 s to 60 s
		assert.InDelta(t, 54+6*float64(tenth)/10, ttls[keys*tenth/10].Seconds(), 1.5+took)
	}

	// Jitter of a tiny Fresh leaves a TTL too.
	for _, jitter := range []float64{0, 0.5, 1} {
		r := join(t, s.Addr, func(s *setup[int]) { s.cache.Policy = stale.Policy{Fresh: time.Millisecond, Jitter: jitter} })
		for i := range 20 {
			got, err := r.GetOrCompute(t.Context(), fmt.Sprint("tiny", i), (&origin[int]{value: i}).compute)
			require.NoError(t, err)
			assert.Equal(t, i, got)
		}
		assert.Zero(t, r.tally.failures("set"))
	}
}

// Case 53: what sounds like "for ever" is no key without a TTL either.
func TestVeryLongTimesAreTTLs(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const ever = 1<<63 - 1
	r := join(t, s.Addr, func(s *setup[string]) {
		s.cache.Policy = stale.Policy{Fresh: ever, IfError: ever}
		s.cache.Limit = ever
	})
	get(t, r, "k", (&origin[string]{value: "v"}).compute, cache.Computed)
	get(t, r, "k", never[string](t), cache.Hit)
	for key, ttl := range redistest.Keys(t, r.rdb) {
		assert.Greater(t, ttl, time.Hour, key)
	}
	require.NoError(t, r.Delete(t.Context(), "k"))
	get(t, r, "k", (&origin[string]{value: "v"}).compute, cache.Computed)
}
