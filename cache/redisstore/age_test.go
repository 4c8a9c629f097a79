package redisstore_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// redate gives the entry of key another time of publication, with a stamp as good as the store's own.
func redate(t *testing.T, rdb *redis.Client, key string, shift time.Duration) {
	t.Helper()
	field := entryField(t, rdb, key)
	entry, err := rdb.HGet(t.Context(), redisKey("v", key), field).Result()
	require.NoError(t, err)
	var published int64
	_, err = fmt.Sscanf(entry[16:32], "%d", &published)
	require.NoError(t, err)
	stamp := entry[:16] + fmt.Sprintf("%016d", published+shift.Microseconds())
	sum := sha1.Sum([]byte(stamp))
	require.NoError(t, rdb.HSet(t.Context(), redisKey("v", key), field, stamp+hex.EncodeToString(sum[:4])+entry[40:]).Err())
}

// Guarantee 20: an entry from the future is not fresh for ever. It is renewed, once.
func TestAnEntryFromTheFutureIsNotFresh(t *testing.T) {
	t.Parallel()
	s := serve(t)
	strict := fleet[string](t, s.Addr, 2)
	o := origin[string]{value: "v"}
	get(t, strict[0], "k", o.compute, cache.Computed)
	redate(t, strict[0].rdb, "k", time.Hour)
	herd(t, strict, 20, "k", "v", o.compute)
	assert.EqualValues(t, 2, o.runs.Load())
	get(t, strict[1], "k", never[string](t), cache.Hit)

	lenient := fleet(t, s.Addr, 2, func(s *setup[int]) { s.cache.Policy.WhileRevalidate = time.Hour })
	n := origin[int]{value: 1}
	get(t, lenient[0], "n", n.compute, cache.Computed)
	redate(t, lenient[0].rdb, "n", time.Hour)
	outcomes := herd(t, lenient, 20, "n", 1, n.compute)
	assert.Positive(t, outcomes[cache.Stale])
	assert.Eventually(t, func() bool {
		r, err := lenient[0].Get(t.Context(), "n")
		return err == nil && r.Outcome == cache.Hit
	}, patience, tick)
	assert.EqualValues(t, 2, n.runs.Load())
}

// Ages count from publication, and are the same for every replica.
func TestAgesCountFromPublication(t *testing.T) {
	t.Parallel()
	replicas := fleet(t, serve(t).Addr, 2, func(s *setup[string]) {
		s.cache.Policy = stale.Policy{Fresh: time.Hour, WhileRevalidate: time.Hour}
	})
	get(t, replicas[0], "k", (&origin[string]{value: "v", takes: 500 * time.Millisecond}).compute, cache.Computed)
	redate(t, replicas[0].rdb, "k", -10*time.Minute)
	for range 3 { // by a script that asks for the time, and without
		for _, r := range replicas {
			got, err := r.Lookup(t.Context(), "k", never[string](t))
			require.NoError(t, err)
			assert.InDelta(t, 10*time.Minute, got.Age, float64(300*time.Millisecond))
			assert.GreaterOrEqual(t, got.Age, 10*time.Minute, "rather too old than too young")
		}
	}
	redate(t, replicas[0].rdb, "k", -50*time.Minute)
	got, err := replicas[1].Get(t.Context(), "k")
	require.NoError(t, err)
	assert.Equal(t, cache.Stale, got.Outcome)
}

// jumping starts a server whose clock the test sets, and two replicas on it.
func jumping(t *testing.T) (m *miniredis.Miniredis, a, b *replica[string]) {
	t.Helper()
	m = miniredis.NewMiniRedis()
	m.SetTime(time.Now())
	require.NoError(t, m.Start())
	t.Cleanup(m.Close)
	return m, join[string](t, m.Addr()), join[string](t, m.Addr())
}

// A replica that has not noticed that the server's clock is another now reads what one that has has written.
func TestAnEntryFromAfterAJumpIsAHit(t *testing.T) {
	t.Parallel()
	m, a, b := jumping(t)
	get(t, b, "k", (&origin[string]{value: "v"}).compute, cache.Computed)
	get(t, b, "k", never[string](t), cache.Hit)
	m.SetTime(time.Now().Add(time.Hour))
	get(t, a, "new", (&origin[string]{value: "v"}).compute, cache.Computed)
	get(t, b, "new", never[string](t), cache.Hit)
	_, err := b.Get(t.Context(), "k")
	require.ErrorIs(t, err, cache.ErrNotFound, "by now it knows that an hour has passed")
}

// After a failover another server's clock counts. Whichever way it is off, the key is computed once, not each time.
func TestAJumpOfTheServersClockCostsOneComputation(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]time.Duration{
		"ahead by a second": time.Second, "ahead by an hour": time.Hour, "back by a second": -time.Second, "back by an hour": -time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			m, r, other := jumping(t)
			o := origin[string]{value: "v"}
			get(t, r, "k", o.compute, cache.Computed)
			get(t, r, "k", never[string](t), cache.Hit)
			m.SetTime(time.Now().Add(jump))
			for range 20 {
				_, err := r.GetOrCompute(t.Context(), "k", o.compute)
				require.NoError(t, err)
			}
			assert.LessOrEqual(t, o.runs.Load(), int64(2), "the entry of before")
			fresh := origin[string]{value: "w"}
			for range 20 {
				_, err := r.GetOrCompute(t.Context(), "other", fresh.compute)
				require.NoError(t, err)
			}
			assert.EqualValues(t, 1, fresh.runs.Load(), "an entry of after")
			got, err := r.Get(t.Context(), "other")
			require.NoError(t, err)
			assert.Less(t, got.Age, 500*time.Millisecond)

			// What another replica has computed is a hit here, and deletions and writes go on.
			for range 3 {
				assert.Equal(t, "w", get(t, other, "other", never[string](t), cache.Hit))
				require.NoError(t, other.Delete(t.Context(), "k", "other"))
				get(t, r, "k", o.compute, cache.Computed)
				get(t, r, "k", never[string](t), cache.Hit)
				get(t, r, "other", fresh.compute, cache.Computed)
			}
		})
	}
}

// Nor does the clock bring anything back when it has caught up.
func TestADeletionWhileTheServersClockIsBackHoldsAfterwards(t *testing.T) {
	t.Parallel()
	m, r, _ := jumping(t)
	key, now := cache.Key{Name: "k", Schema: "0123456789abcdef"}, time.Now()
	fence, _, err := r.store.Begin(t.Context(), key, 0, time.Hour)
	require.NoError(t, err)
	m.SetTime(now.Add(-time.Minute))
	require.NoError(t, r.store.Delete(t.Context(), 0, "k"))
	m.SetTime(now.Add(time.Minute))
	_, _, err = r.store.Begin(t.Context(), key, 0, time.Hour)
	require.NoError(t, err)
	err = r.store.Set(t.Context(), key, cache.Write{Data: []byte("old"), Fence: fence, TTL: time.Hour})
	assert.ErrorIs(t, err, cache.ErrFenced)
}
