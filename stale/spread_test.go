package stale_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/stale"
)

func TestSpread(t *testing.T) {
	t.Run("shortens Fresh by Jitter times the draw", func(t *testing.T) {
		assert.Equal(t, 10*time.Minute, news.Spread(0).Fresh)
		assert.Equal(t, 9*time.Minute+30*time.Second, news.Spread(0.5).Fresh)
		assert.Equal(t, 9*time.Minute, news.Spread(1).Fresh)
	})
	t.Run("changes nothing but Fresh and Jitter", rapid.MakeCheck(func(t *rapid.T) {
		p, u := valid().Draw(t, "policy"), rapid.Float64Range(0, 1).Draw(t, "u")
		s := p.Spread(u)
		assert.NoError(t, s.Validate())
		assert.Equal(t, s, s.Spread(u), "spreading twice is spreading once")
		assert.Zero(t, s.Jitter)
		s.Fresh, s.Jitter = p.Fresh, p.Jitter
		assert.Equal(t, p, s)
	}))
	t.Run("never lengthens Fresh nor cuts more than Jitter", rapid.MakeCheck(func(t *rapid.T) {
		p, u := valid().Draw(t, "policy"), rapid.Float64Range(0, 1).Draw(t, "u")
		got := p.Spread(u).Fresh
		assert.LessOrEqual(t, got, p.Fresh)
		assert.GreaterOrEqual(t, got, min(p.Fresh, time.Millisecond))
		// The slack is what float64 rounds away: 2⁻⁵² of Fresh, a few times.
		assert.GreaterOrEqual(t, float64(got), float64(p.Fresh)*(1-p.Jitter)-float64(p.Fresh)*1e-15-1)
	}))
	t.Run("without jitter is exact at every length", rapid.MakeCheck(func(t *rapid.T) {
		p, u := valid().Draw(t, "policy"), rapid.Float64Range(0, 1).Draw(t, "u")
		p.Jitter = 0
		assert.Equal(t, p, p.Spread(u))
	}))
	t.Run("full jitter leaves a millisecond, or Fresh if that is less", func(t *testing.T) {
		almost := math.Nextafter(1, 0)
		for _, fresh := range []time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Hour, forever} {
			for _, u := range []float64{almost, 1, 2, math.Inf(1)} {
				got := stale.Policy{Fresh: fresh, Jitter: 1}.Spread(u).Fresh
				assert.GreaterOrEqual(t, got, min(fresh, time.Millisecond), "Fresh %v, u %v", fresh, u)
				assert.LessOrEqual(t, got, fresh, "Fresh %v, u %v", fresh, u)
			}
		}
	})
	t.Run("takes anything without lengthening Fresh", rapid.MakeCheck(func(t *rapid.T) {
		p, u := anything().Draw(t, "policy"), anyFloat().Draw(t, "u")
		got := p.Spread(u)
		assert.LessOrEqual(t, got.Fresh, p.Fresh)
		assert.Equal(t, p.Fresh > 0, got.Fresh > 0)
		assert.Zero(t, got.Jitter)
	}))
	t.Run("a thousand values stored at once run out one by one", func(t *testing.T) {
		const values, buckets = 1000, 20 // 50 a bucket, give or take 7
		random := rand.New(rand.NewPCG(1, 2))
		p := stale.Policy{Fresh: 10 * time.Minute, Jitter: 0.1}
		var histogram [buckets]int
		for range values {
			cut := p.Fresh - p.Spread(random.Float64()).Fresh
			histogram[cut*buckets/time.Minute]++
		}
		assert.Less(t, slices.Max(histogram[:]), 80, "%v", histogram)
		assert.Greater(t, slices.Min(histogram[:]), 25, "%v", histogram)
	})
}
