package recompute_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/recompute"
)

// first returns the first n pauses.
func first(n int, b recompute.Backoff) (pauses []time.Duration) {
	for pause := range b.Pauses() {
		if pauses = append(pauses, pause); len(pauses) == n {
			break
		}
	}
	return pauses
}

func TestPausesDoubleUpToTheCeiling(t *testing.T) {
	assert.Equal(t, ms(10, 20, 40, 80, 100, 100), first(6, recompute.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}))
}

func TestTheZeroBackoffPausesAMillisecond(t *testing.T) {
	assert.Equal(t, ms(1, 1, 1), first(3, recompute.Backoff{}))
}

func TestEachIterationBeginsAgain(t *testing.T) {
	b := recompute.Backoff{Min: 10 * time.Millisecond, Max: time.Second}
	pauses := b.Pauses()
	for outer := range pauses {
		for inner := range pauses { // while the outer one is under way
			assert.Equal(t, 10*time.Millisecond, inner)
			break
		}
		if outer == 40*time.Millisecond {
			break
		}
	}
	assert.Equal(t, first(10, b), first(10, b))
}

func TestJitterSpreadsPausesOverItsWholeWidth(t *testing.T) {
	b := recompute.Backoff{Min: time.Second, Max: time.Second, Jitter: 0.5}
	var sum, least, most = time.Duration(0), time.Hour, time.Duration(0)
	const n = 10_000
	for _, pause := range first(n, b) {
		sum, least, most = sum+pause, min(least, pause), max(most, pause)
	}
	assert.InDelta(t, time.Second, sum/n, float64(20*time.Millisecond))
	assert.InDelta(t, 500*time.Millisecond, least, float64(10*time.Millisecond))
	assert.InDelta(t, 1500*time.Millisecond, most, float64(10*time.Millisecond))
}

func TestPausesStayWithinTheirBoundsWhateverTheBackoff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := recompute.Backoff{
			Min:    time.Duration(rapid.Int64().Draw(t, "min")),
			Max:    time.Duration(rapid.Int64().Draw(t, "max")),
			Jitter: rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64()).Draw(t, "jitter"),
		}
		least := min(max(b.Min, time.Millisecond), math.MaxInt64/2)
		ceiling := float64(min(max(b.Max, least), math.MaxInt64/2))
		jitter := min(max(b.Jitter, 0), 1)
		want := float64(least)
		for n, pause := range first(100, b) {
			if pause < time.Millisecond {
				t.Fatalf("pause %d is %v", n, pause)
			}
			low, high := want*(1-jitter), max(want*(1+jitter), float64(time.Millisecond))
			const rounding = 1e-9
			if p := float64(pause); p < low*(1-rounding)-1 || p > high*(1+rounding)+1 {
				t.Fatalf("pause %d is %v, not in %v … %v", n, pause, time.Duration(low), time.Duration(high))
			}
			want = min(2*want, ceiling)
		}
	})
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		assert.True(t, recompute.Pause(t.Context(), time.Second))
		assert.Equal(t, time.Second, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.False(t, recompute.Pause(ctx, time.Minute))
		assert.Equal(t, 2*time.Second, time.Since(began))
	})
}
