package redisstore_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/bellwether-cache/bellwether/cache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The example runs on miniredis where there is no redis-server. It must do there what it does on the real thing.
func TestAllOfItWorksOnMiniredis(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	short := func(s *setup[string]) { s.cache.Lease = 500 * time.Millisecond }
	replicas := fleet(t, m.Addr(), 3, short)
	a, b := replicas[0], replicas[1]

	t.Run("miss and hit", func(t *testing.T) {
		get(t, a, "k", (&origin[string]{value: "v"}).compute, cache.Computed)
		for _, r := range replicas {
			assert.Equal(t, "v", get(t, r, "k", never[string](t), cache.Hit))
			assert.Equal(t, "v", get(t, r, "k", never[string](t), cache.Hit))
		}
		assert.Positive(t, m.TTL(redisKey("v", "k")))
		assert.Positive(t, m.TTL(redisKey("f", "k")))
		assert.False(t, m.Exists(redisKey("l", "k")))
	})
	t.Run("herd", func(t *testing.T) {
		for _, takes := range []time.Duration{50 * time.Millisecond, 1200 * time.Millisecond} {
			o := origin[string]{value: "v", takes: takes}
			outcomes := herd(t, replicas, 20, takes.String(), "v", o.compute)
			assert.EqualValues(t, 1, o.runs.Load())
			assert.Equal(t, map[cache.Outcome]int{cache.Computed: 1, cache.Collapsed: 59}, outcomes)
		}
	})
	t.Run("deletion under a computation", func(t *testing.T) {
		v1 := gate("v1")
		asked := ask(t, a, "d", v1.compute)
		<-v1.running
		require.NoError(t, b.Delete(t.Context(), "d"))
		close(v1.open)
		assert.Equal(t, "v1", (<-asked).Value)
		assert.Equal(t, "v2", get(t, b, "d", (&origin[string]{value: "v2"}).compute, cache.Computed))
		assert.EqualValues(t, 1, a.tally.overtaken.Load())
	})
	t.Run("takeover", func(t *testing.T) {
		_, err := a.store.Locker().Acquire(t.Context(), "dead", 500*time.Millisecond) // and nothing is heard of its holder again
		require.NoError(t, err)
		o := origin[string]{value: "v"}
		asked := ask(t, b, "dead", o.compute)
		time.Sleep(100 * time.Millisecond)
		assert.Zero(t, o.runs.Load())
		m.FastForward(500 * time.Millisecond) // miniredis ages nothing by itself
		got := <-asked
		require.NoError(t, got.err)
		assert.Equal(t, "v", got.Value)
		assert.Less(t, got.took, 2*time.Second)
	})
	t.Run("damage", func(t *testing.T) {
		require.NoError(t, m.Set(redisKey("v", "g"), "garbage"))
		require.NoError(t, m.Set(redisKey("f", "g"), "garbage"))
		require.NoError(t, m.Set(redisKey("l", "g"), "garbage"))
		get(t, a, "g", (&origin[string]{value: "v"}).compute, cache.Computed)
		get(t, b, "g", never[string](t), cache.Hit)
	})
	t.Run("failure", func(t *testing.T) {
		source := broken{text: "x", takes: 50 * time.Millisecond}
		fail(t, replicas, 5, "failing", &source)
		assert.EqualValues(t, 1, source.runs.Load())
	})
	for _, r := range replicas {
		assert.Zero(t, r.tally.failures("get")+r.tally.failures("begin")+r.tally.failures("set")+r.tally.failures("fail"))
	}
}
