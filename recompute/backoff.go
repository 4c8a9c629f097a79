package recompute

import (
	"context"
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// Backoff describes growing pauses: Min, then twice as long each time, up to Max, each spread by Jitter.
// It is a value: the state of an iteration lives in its range statement, so that callers can share one.
type Backoff struct {
	Min    time.Duration // of the first pause; at least 1 ms
	Max    time.Duration // ceiling before the spread; at least Min
	Jitter float64       // each pause is multiplied by a random factor in 1 ± Jitter; 0…1
}

// longest is a pause that can be doubled without overflow, by growth or by jitter: 146 years.
const longest = math.MaxInt64 / 2

// Pauses yields the pauses, without end.
func (b Backoff) Pauses() iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		least := min(max(b.Min, time.Millisecond), longest)
		most := min(max(b.Max, least), longest)
		jitter := min(max(b.Jitter, 0), 1)
		for pause := least; ; pause = min(2*pause, most) {
			factor := 1 + jitter*(2*rand.Float64()-1)
			if !yield(max(time.Duration(factor*float64(pause)), time.Millisecond)) {
				return
			}
		}
	}
}

// Pause waits for d and says whether ctx still lives.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
