package stale_test

import (
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/stale"
)

const forever = time.Duration(math.MaxInt64)

// news is a policy with every window of its own length, so that no test passes
// by taking one for another.
var news = stale.Policy{
	Fresh:           10 * time.Minute,
	WhileRevalidate: 5 * time.Minute,
	IfError:         time.Hour,
	Keep:            24 * time.Hour,
	Jitter:          0.1,
	Beta:            1,
	Cooldown:        2 * time.Second,
	Negative:        30 * time.Second,
}

// window draws lengths of every magnitude: none, human ones and ones that overflow.
func window(none time.Duration) *rapid.Generator[time.Duration] {
	const least = int64(time.Millisecond)
	return rapid.OneOf(
		rapid.Just(none),
		rapid.Map(rapid.Int64Range(least, int64(time.Hour)), toDuration),
		rapid.Map(rapid.Int64Range(least, math.MaxInt64), toDuration),
		rapid.Just(forever),
	)
}

// valid draws policies that Validate accepts.
func valid() *rapid.Generator[stale.Policy] {
	return rapid.Custom(func(t *rapid.T) stale.Policy {
		return stale.Policy{
			Fresh:           window(time.Millisecond).Draw(t, "Fresh"),
			WhileRevalidate: window(0).Draw(t, "WhileRevalidate"),
			IfError:         window(0).Draw(t, "IfError"),
			Keep:            window(0).Draw(t, "Keep"),
			Jitter:          rapid.Float64Range(0, 1).Draw(t, "Jitter"),
			Beta:            rapid.Float64Range(0, math.MaxFloat64).Draw(t, "Beta"),
			Cooldown:        window(0).Draw(t, "Cooldown"),
			Negative:        window(0).Draw(t, "Negative"),
		}
	})
}

// anything draws policies that nobody validated.
func anything() *rapid.Generator[stale.Policy] {
	return rapid.Custom(func(t *rapid.T) stale.Policy {
		return stale.Policy{
			Fresh:           anyDuration().Draw(t, "Fresh"),
			WhileRevalidate: anyDuration().Draw(t, "WhileRevalidate"),
			IfError:         anyDuration().Draw(t, "IfError"),
			Keep:            anyDuration().Draw(t, "Keep"),
			Jitter:          anyFloat().Draw(t, "Jitter"),
			Beta:            anyFloat().Draw(t, "Beta"),
			Cooldown:        anyDuration().Draw(t, "Cooldown"),
			Negative:        anyDuration().Draw(t, "Negative"),
		}
	})
}

func anyDuration() *rapid.Generator[time.Duration] {
	return rapid.OneOf(
		rapid.Map(rapid.Int64(), toDuration),
		rapid.SampledFrom([]time.Duration{math.MinInt64, -1, 0, 1, math.MaxInt64}),
	)
}

func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64(),
		rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1, math.MaxFloat64}),
	)
}

func toDuration(n int64) time.Duration { return time.Duration(n) }
