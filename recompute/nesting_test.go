package recompute_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

// asking returns work that asks for another key and hands its result on.
func (f *flock) asking(key string, work recompute.Work[string]) recompute.Work[string] {
	return func(ctx context.Context, _ func()) (string, error) {
		f.runs.Add(1)
		return f.Do(ctx, key, work)
	}
}

func TestWorkThatAsksForItsOwnKeyIsRefusedAtOnce(t *testing.T) {
	for name, shut := range map[string]func(f *flock, seal func()){
		"joinable":  func(*flock, func()) {},
		"sealed":    func(_ *flock, seal func()) { seal() },
		"forgotten": func(f *flock, _ func()) { f.Forget("A") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *flock) {
				began := time.Now()
				_, err := f.Do(t.Context(), "A", func(ctx context.Context, seal func()) (string, error) {
					shut(f, seal)
					return f.Do(ctx, "A", f.work)
				})
				require.ErrorIs(t, err, recompute.ErrRecursive)
				assert.Zero(t, time.Since(began))
				assert.Zero(t, f.runs.Load(), "nor does it start another flight")
			})
		})
	}
}

func TestWorkThatWaitsForItsOwnFlightIsRefusedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		_, err := f.Do(t.Context(), "A", func(ctx context.Context, seal func()) (string, error) { return f.Find("A").Wait(ctx) })
		require.ErrorIs(t, err, recompute.ErrRecursive)
	})
}

func TestWorkMayAskForAnotherKey(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		close(f.gate)
		value, err := f.Do(t.Context(), "A", f.asking("B", f.asking("C", f.work)))
		require.NoError(t, err)
		assert.Equal(t, "run 3", value)
	})
}

func TestWorkMayAskAnotherGroupForTheSameKey(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		other := recompute.NewGroup[string](f.tasks, limit)
		close(f.gate)
		_, err := f.Do(t.Context(), "A", func(ctx context.Context, _ func()) (string, error) { return other.Do(ctx, "A", f.work) })
		require.NoError(t, err)
	})
}

func TestARoundaboutRequestForItsOwnKeyIsRefusedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		began := time.Now()
		_, err := f.Do(t.Context(), "A", f.asking("B", func(ctx context.Context, seal func()) (string, error) {
			type detail struct{}
			ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), detail{}, 1), time.Hour)
			defer cancel()
			return f.asking("A", f.work)(ctx, seal)
		}))
		require.ErrorIs(t, err, recompute.ErrRecursive)
		assert.Zero(t, time.Since(began))
	})
}

// Two flights that different callers started and that wait for each other can't be told from two that are slow.
func TestTwoFlightsThatWaitForEachOtherEndAtTheirLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		meet := make(chan struct{})
		crossing := func(key string) recompute.Work[string] {
			return func(ctx context.Context, seal func()) (string, error) {
				<-meet
				return f.Do(ctx, key, f.work)
			}
		}
		a := f.ask(t.Context(), 1, "A", crossing("B"))
		b := f.ask(t.Context(), 1, "B", crossing("A"))
		close(meet)
		time.Sleep(limit)
		f.all(1, a, "", recompute.ErrLimit)
		f.all(1, b, "", recompute.ErrLimit)
	})
}

func TestWhatAFlightLeftRunningMayAskForItsKey(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		close(f.gate)
		var left context.Context
		_, err := f.Do(t.Context(), "A", func(ctx context.Context, _ func()) (string, error) {
			left = context.WithoutCancel(ctx)
			return "", nil
		})
		require.NoError(t, err)
		synctest.Wait()
		value, err := f.Do(left, "A", f.work)
		require.NoError(t, err)
		assert.Equal(t, "run 1", value)
	})
}

func TestWorkThatAsksForItsOwnLeaseByAnotherGuardIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(recompute.Local)
		outer, inner := guard(t, l, recompute.GuardOptions{}), guard(t, l, recompute.GuardOptions{})
		elsewhere := guard(t, new(recompute.Local), recompute.GuardOptions{})
		began := time.Now()
		require.NoError(t, outer.Do(t.Context(), "k", func(ctx context.Context, _ *recompute.Held) error {
			require.ErrorIs(t, inner.Do(ctx, "k", never(t)), recompute.ErrRecursive)
			return elsewhere.Do(ctx, "k", func(context.Context, *recompute.Held) error { return nil })
		}))
		assert.Zero(t, time.Since(began))
	})
}
