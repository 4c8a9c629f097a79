package cache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

func TestAComputationSaysHowLongItsValueLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Hour}})
		lasting := func(p stale.Policy) cache.Compute[string] {
			return func(ctx context.Context) (string, error) { return "v", cache.Lasting(ctx, p) }
		}
		outcome := func(key string, compute cache.Compute[string]) cache.Outcome {
			r, err := c.Lookup(t.Context(), key, compute)
			require.NoError(t, err)
			return r.Outcome
		}
		short := lasting(stale.Policy{Fresh: time.Second, WhileRevalidate: time.Second, IfError: time.Second})
		assert.Equal(t, cache.Computed, outcome("short", short))
		time.Sleep(time.Second - 1)
		assert.Equal(t, cache.Hit, outcome("short", nilCompute))
		time.Sleep(2 * time.Second)
		r, err := c.Lookup(t.Context(), "short", func(context.Context) (string, error) { return "", errDown })
		require.NoError(t, err)
		assert.Equal(t, cache.Stale, r.Outcome, "in place of an error")
		time.Sleep(time.Second)
		assert.Equal(t, cache.Computed, outcome("short", short))

		never := lasting(stale.Policy{})
		assert.Equal(t, cache.Computed, outcome("never", never))
		assert.Equal(t, cache.Computed, outcome("never", never), "of no use for no time")
		rest := lasting(stale.Policy{Fresh: 1, WhileRevalidate: 1, IfError: 1, Keep: 1})
		assert.Equal(t, cache.Computed, outcome("rest", rest), "what is left of a window may be short")

		_, err = c.Lookup(t.Context(), "wrong", lasting(stale.Policy{Fresh: time.Second, IfError: -1}))
		require.ErrorContains(t, err, "cache: Lasting: stale: Policy.IfError is -1ns, must be 0 or at least 1ms")
		_, err = c.Lookup(t.Context(), "wrong", lasting(stale.Policy{Fresh: -1}))
		require.ErrorContains(t, err, "Policy.Fresh is -1ns")
		require.ErrorContains(t, cache.Lasting(t.Context(), stale.Policy{}), "not that of a computation")
	})
}

// What may not be served without asking is computed by each who asks, but nobody queues for it.
func TestAValueThatIsNeverFreshMakesNobodyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5, cache.Options[string]{Policy: plain})
		compute := func(ctx context.Context) (string, error) {
			v, err := f.compute(ctx)
			return v, errors.Join(err, cache.Lasting(ctx, stale.Policy{Keep: time.Hour}))
		}
		for range 3 {
			before := f.runs.Load()
			for _, r := range f.crowdFor(20, "k", compute)() {
				require.NoError(t, r.err)
				require.LessOrEqual(t, r.took, 2*f.takes)
			}
			require.LessOrEqual(t, f.runs.Load()-before, int64(5), "one in each replica")
		}
	})
}

func TestAComputationSeesTheValueThatItIsToReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{
			Policy: stale.Policy{Fresh: time.Second, IfError: time.Second, Keep: time.Minute},
		})
		seen := func(ctx context.Context) (string, error) {
			former, ok := cache.Former[string](ctx)
			if !ok {
				return "nothing", nil
			}
			return former.Value + " of " + former.Age.String(), nil
		}
		ask := func() string {
			v, err := c.GetOrCompute(t.Context(), "k", seen)
			require.NoError(t, err)
			return v
		}
		assert.Equal(t, "nothing", ask())
		time.Sleep(time.Minute)
		_, err := c.Get(t.Context(), "k")
		require.ErrorIs(t, err, cache.ErrNotFound, "it is not served")
		_, err = c.Lookup(t.Context(), "k", func(context.Context) (string, error) { return "", errDown })
		require.ErrorIs(t, err, errDown, "nor in place of an error")
		assert.Equal(t, "nothing of 1m0s", ask())
		time.Sleep(time.Minute + 2*time.Second)
		assert.Equal(t, "nothing", ask(), "it is kept no longer")
		_, ok := cache.Former[string](t.Context())
		assert.False(t, ok)
	})
}

func TestThatThereIsNothingIsNoFormerValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute, Negative: time.Minute}})
		_, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { return "", cache.ErrNotFound })
		require.ErrorIs(t, err, cache.ErrNotFound)
		_, err = c.Refresh(t.Context(), "k", func(ctx context.Context) (string, error) {
			_, ok := cache.Former[string](ctx)
			assert.False(t, ok)
			return "v", nil
		})
		require.NoError(t, err)
	})
}

// Whoever waits for a computation that keeps its result to itself is told at once, and the computation goes on.
func TestAComputationMayKeepItsResultToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		o := cache.Options[string]{Policy: stale.Policy{Fresh: time.Second, IfError: time.Hour}, Limit: time.Minute}
		here, there := open(t, m, o), open(t, m, o)
		require.NoError(t, here.Set(t.Context(), "k", "old"))
		time.Sleep(time.Second)
		var runs, over atomic.Int64
		alone := func(ctx context.Context) (string, error) {
			runs.Add(1)
			time.Sleep(time.Second)
			_, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.True(t, cache.Pass(ctx, 5*time.Second))
			_, ok = ctx.Deadline()
			assert.False(t, ok, "the limit is not its any more")
			time.Sleep(time.Hour)
			assert.NoError(t, ctx.Err())
			assert.True(t, cache.Pass(ctx, 5*time.Second), "a second time is harmless")
			over.Add(1)
			return "mine", nil
		}
		require.NoError(t, here.Delete(t.Context(), "k"))
		began := time.Now()
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				_, err := []*cache.Cache[string]{here, there}[i%2].Lookup(t.Context(), "k", alone)
				assert.ErrorIs(t, err, cache.ErrPass)
				assert.LessOrEqual(t, time.Since(began), 2*time.Second)
			})
		}
		callers.Wait()
		assert.EqualValues(t, 2, runs.Load(), "one in each replica")
		time.Sleep(6 * time.Second)
		v, err := there.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { return "ours", nil })
		require.NoError(t, err)
		assert.Equal(t, "ours", v, "and then it is a key like any other")
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 2, over.Load())
		assert.False(t, cache.Pass(t.Context(), 0))
	})
}

// A stale value must not hide that the answer is to be got elsewhere.
// A stream may go on for days; nothing is wrong with it, nor with its key.
func TestAComputationThatKeepsItsResultToItselfIsNotTakenForOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: plain})
		stream := func(ctx context.Context) (string, error) {
			time.Sleep(time.Second)
			cache.Pass(ctx, 5*time.Second)
			time.Sleep(24 * time.Hour)
			return "", nil
		}
		for range 2 { // the second time nobody is elected
			go func() { _, _ = c.GetOrCompute(t.Context(), "stream", stream) }()
			time.Sleep(time.Second - 1)
			assert.NotZero(t, c.Oldest())
			time.Sleep(time.Second)
			assert.Zero(t, c.Oldest())
		}
		time.Sleep(25 * time.Hour)
	})
}

func TestAResultThatIsNotSharedIsNotHiddenByAStaleValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Second, IfError: time.Hour}})
		require.NoError(t, c.Set(t.Context(), "k", "old"))
		time.Sleep(time.Second)
		_, err := c.Lookup(t.Context(), "k", func(ctx context.Context) (string, error) {
			cache.Pass(ctx, 5*time.Second)
			<-ctx.Done()
			assert.ErrorIs(t, context.Cause(ctx), cache.ErrClosed, "Close ends it")
			return "", nil
		})
		require.ErrorIs(t, err, cache.ErrPass)
	})
}

func TestARefreshTakesNoStoredValueForAnAnswer(t *testing.T) {
	for says, age := range map[string]time.Duration{"fresh": time.Second, "good in place of a wait": windows.Fresh + windows.WhileRevalidate} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 2, cache.Options[string]{Policy: windows})
				f.store("k", "old")
				time.Sleep(age)
				var callers sync.WaitGroup
				var computed, collapsed atomic.Int64
				for i := range 100 {
					f.calls.Add(1)
					callers.Go(func() {
						r, err := f.replicas[i%2].Refresh(t.Context(), "k", f.compute)
						assert.NoError(t, err)
						assert.Equal(t, "v1", r.Value)
						switch r.Outcome {
						case cache.Computed:
							computed.Add(1)
						case cache.Collapsed:
							collapsed.Add(1)
						}
					})
				}
				callers.Wait()
				assert.EqualValues(t, 1, f.runs.Load(), "a thousand who insist are one computation")
				assert.EqualValues(t, 1, computed.Load())
				assert.EqualValues(t, 99, collapsed.Load())
				values(t, "v1", f.crowd(1, "k"))

				f.down.Store(true)
				f.calls.Add(1)
				r, err := f.replicas[0].Refresh(t.Context(), "k", f.compute)
				require.NoError(t, err, "what is there stands in for the error")
				assert.Equal(t, cache.Stale, r.Outcome)
			})
		})
	}
}

type unchanging struct{ List []int }

func (unchanging) Immutable() {}

func TestValuesThatSayThatTheyAreImmutableAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := cache.New(cache.NewMemory(), cache.Options[unchanging]{Policy: plain})
		require.NoError(t, err)
		defer c.Close()
		lists := make([][]int, 2)
		var callers sync.WaitGroup
		for i := range lists {
			callers.Go(func() {
				v, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (unchanging, error) {
					time.Sleep(time.Second)
					return unchanging{List: []int{1}}, nil
				})
				assert.NoError(t, err)
				lists[i] = v.List
			})
		}
		callers.Wait()
		assert.Same(t, &lists[0][0], &lists[1][0])
	})
}
