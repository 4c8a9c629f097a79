package cache_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// nested computes by asking replica i for another key.
func (f *fleet) nested(i int, key string, compute cache.Compute[string]) cache.Compute[string] {
	return func(ctx context.Context) (string, error) {
		f.enter()
		defer f.now.Add(-1)
		r := f.askFor(ctx, i, key, compute)
		return "from " + r.Value, r.err
	}
}

// Guarantee 22; case 10.
func TestAComputationMayAskForAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		all := f.crowdFor(20, "a", f.nested(0, "b", f.nested(1, "c", f.compute)))()
		values(t, "from from v3", all)
		assert.EqualValues(t, 3, f.runs.Load())
		f.stands("b", "from v3")
	})
}

func TestAComputationThatAsksForItsOwnKeyIsRefusedAtOnce(t *testing.T) {
	for says, keys := range map[string][]string{"itself": {"a"}, "by another": {"a", "b"}, "by two others": {"a", "b", "c"}} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 1, cache.Options[string]{Policy: plain})
				compute := f.nested(0, "a", f.compute)
				for i := len(keys) - 1; i > 0; i-- {
					compute = f.nested(0, keys[i], compute)
				}
				r := f.askFor(t.Context(), 0, "a", compute)
				require.ErrorIs(t, r.err, recompute.ErrRecursive)
				require.Zero(t, r.took)
				require.NoError(t, f.ask(0, "a").err, "and the key is usable")
			})
		})
	}
}

// Two computations that wait for each other can't know it. Their patience ends it.
func TestComputationsThatWaitForEachOtherEnd(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, replicas, cache.Options[string]{Policy: plain, Wait: 2 * time.Second, Limit: 10 * time.Second})
			slow := func(i int, key string) cache.Compute[string] {
				return func(ctx context.Context) (string, error) {
					time.Sleep(100 * time.Millisecond)
					return f.nested(i, key, f.compute)(ctx)
				}
			}
			a := join(f, 0, 1, slow(0, "other"))[0]
			b := &guest{gone: make(chan struct{})}
			go func() {
				defer close(b.gone)
				b.reply = f.askFor(t.Context(), replicas-1, "other", slow(replicas-1, "k"))
			}()
			for _, r := range wait(a, b) {
				require.LessOrEqual(t, r.took, 2*time.Second)
			}
			time.Sleep(10 * time.Second)
			require.NoError(t, f.ask(0, "k").err)
		})
	}
}

// A key may be deleted from inside its own computation; asking for it again is still asking for oneself.
func TestAComputationThatDeletesItsKeyCanNotAskForItEither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain})
		r := f.askFor(t.Context(), 0, "k", func(ctx context.Context) (string, error) {
			assert.NoError(t, f.replicas[0].Delete(ctx, "k"))
			return f.nested(0, "k", f.compute)(ctx)
		})
		require.ErrorIs(t, r.err, recompute.ErrRecursive)
		require.Zero(t, r.took)
	})
}

func TestAComputationWithoutAFenceDoesNotSeeThatOfTheOneThatAsksForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: plain})
		inner := func(ctx context.Context) (string, error) {
			cache.NoStore(ctx)
			return fmt.Sprint(cache.FenceOf(ctx)), nil
		}
		_, err := c.GetOrCompute(t.Context(), "inner", inner) // from now on each process is on its own
		require.NoError(t, err)
		v, err := c.GetOrCompute(t.Context(), "outer", func(ctx context.Context) (string, error) {
			assert.NotZero(t, cache.FenceOf(ctx))
			return c.GetOrCompute(ctx, "inner", inner)
		})
		require.NoError(t, err)
		assert.Equal(t, "0", v)
	})
}
