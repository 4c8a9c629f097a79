package stale_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/stale"
)

// hot is recomputed early: at a cost of 10 s, about every third reader is early
// at age 90 s.
var hot = stale.Policy{Fresh: 100 * time.Second, WhileRevalidate: time.Hour, Beta: 1}

const cost = 10 * time.Second

func TestEarly(t *testing.T) {
	t.Run("is true from where age and head start reach Fresh", func(t *testing.T) {
		u := math.Exp(-2) // a head start of 2 · Beta · cost = 20 s
		assert.False(t, hot.Early(79*time.Second, cost, u))
		assert.True(t, hot.Early(81*time.Second, cost, u))
		twice := hot
		twice.Beta = 2
		assert.False(t, twice.Early(59*time.Second, cost, u))
		assert.True(t, twice.Early(61*time.Second, cost, u))
	})
	t.Run("comes as often as the formula says", func(t *testing.T) {
		const draws = 100_000
		for _, beta := range []float64{0.5, 1, 2} {
			for _, age := range []time.Duration{55, 70, 80, 90, 95, 99} {
				p, age, random, yes := hot, age*time.Second, rand.New(rand.NewPCG(1, 2)), 0
				p.Beta = beta
				for range draws {
					if p.Early(age, cost, 1-random.Float64()) {
						yes++
					}
				}
				want := math.Exp(-(p.Fresh - age).Seconds() / (beta * cost.Seconds()))
				assert.InDelta(t, want, float64(yes)/draws, 0.006, "beta %v at age %v", beta, age)
			}
		}
	})
	t.Run("once true for a draw, stays true until Fresh ends", rapid.MakeCheck(func(t *rapid.T) {
		p, cost := valid().Draw(t, "policy"), window(0).Draw(t, "cost")
		u := rapid.Float64Range(0, 1).Draw(t, "u")
		age := rapid.Map(rapid.Int64Range(0, int64(p.Fresh)-1), toDuration).Draw(t, "age")
		later := rapid.Map(rapid.Int64Range(int64(age), int64(p.Fresh)-1), toDuration).Draw(t, "later")
		assert.True(t, !p.Early(age, cost, u) || p.Early(later, cost, u))
	}))
}

func TestEarlyIsBounded(t *testing.T) {
	t.Run("never comes in the first half of Fresh, whatever the cost and the draw", rapid.MakeCheck(func(t *rapid.T) {
		p, cost := valid().Draw(t, "policy"), window(1).Draw(t, "cost")
		age := rapid.Map(rapid.Int64Range(0, int64(p.Fresh-p.Fresh/2)-1), toDuration).Draw(t, "age")
		u := rapid.SampledFrom([]float64{0, math.SmallestNonzeroFloat64, 0.5, 1}).Draw(t, "u")
		assert.False(t, p.Early(age, cost, u))
	}))
	t.Run("is capped, not switched off, by a cost beyond half of Fresh", func(t *testing.T) {
		assert.False(t, hot.Early(50*time.Second-1, forever, 1e-9))
		assert.True(t, hot.Early(50*time.Second, forever, 1e-9))
		dear := hot
		dear.Beta = math.MaxFloat64
		assert.True(t, dear.Early(50*time.Second, forever, math.SmallestNonzeroFloat64))
	})
	t.Run("is only about values that are fresh", rapid.MakeCheck(func(t *rapid.T) {
		p := anything().Draw(t, "policy")
		age, cost, u := anyDuration().Draw(t, "age"), anyDuration().Draw(t, "cost"), anyFloat().Draw(t, "u")
		assert.True(t, !p.Early(age, cost, u) || p.Phase(age) == stale.Fresh)
	}))
	t.Run("is false at the end of Fresh and for a date in the future", func(t *testing.T) {
		for _, age := range []time.Duration{-forever - 1, -1, hot.Fresh, hot.Fresh + 1, forever} {
			assert.False(t, hot.Early(age, cost, 1e-9), "at age %v", age)
		}
	})
}

func TestEarlyIsOff(t *testing.T) {
	nearly := hot.Fresh - 1
	with := func(beta float64) stale.Policy {
		p := hot
		p.Beta = beta
		return p
	}
	assert.True(t, hot.Early(nearly, cost, 0.5), "what the cases below switch off")

	t.Run("without Beta", func(t *testing.T) {
		for _, beta := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
			assert.False(t, with(beta).Early(nearly, cost, 0.5), "Beta %v", beta)
		}
	})
	t.Run("for what cost nothing", func(t *testing.T) {
		for _, free := range []time.Duration{0, -1, -cost, -forever - 1} {
			assert.False(t, hot.Early(nearly, free, 0.5), "cost %v", free)
			assert.False(t, with(-1).Early(nearly, free, 0.5), "cost %v, two wrongs", free)
		}
	})
	t.Run("for a broken source of draws", func(t *testing.T) {
		for _, u := range []float64{0, -1, 1.5, math.NaN(), math.Inf(1), math.Inf(-1)} {
			assert.False(t, hot.Early(nearly, cost, u), "u %v", u)
			assert.False(t, with(math.Inf(1)).Early(nearly, cost, u), "u %v, Beta without end", u)
		}
	})
}
