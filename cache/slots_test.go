package cache_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// busy is a source that knows how many computations are under way.
type busy struct{ now, most, runs atomic.Int64 }

func (b *busy) compute(d time.Duration) cache.Compute[string] {
	return func(ctx context.Context) (string, error) {
		b.runs.Add(1)
		now := b.now.Add(1)
		defer b.now.Add(-1)
		for most := b.most.Load(); most < now && !b.most.CompareAndSwap(most, now); most = b.most.Load() {
		}
		return "v", pause(ctx, d)
	}
}

// Cases 75, 90 and 103.
func TestNoMoreComputationsRunAtOnceThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: plain, MaxComputes: 10})
		var source busy
		var callers sync.WaitGroup
		for i := range 1_000 {
			callers.Go(func() {
				v, err := c.GetOrCompute(t.Context(), fmt.Sprint(i%500), source.compute(100*time.Millisecond))
				assert.NoError(t, err)
				assert.Equal(t, "v", v)
			})
		}
		began := time.Now()
		callers.Wait()
		assert.EqualValues(t, 500, source.runs.Load(), "nobody is forgotten")
		assert.EqualValues(t, 10, source.most.Load())
		assert.Equal(t, 5*time.Second, time.Since(began), "and no time is lost")
	})
}

func TestWhoeverHasNoRoomToComputeIsServedStaleOrWaitsAsLongAsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: windows, MaxComputes: 1, Wait: 2 * time.Second})
		require.NoError(t, c.Set(t.Context(), "behind", "old"))
		time.Sleep(windows.Fresh + windows.WhileRevalidate)
		require.NoError(t, c.Set(t.Context(), "refreshed", "old"))
		time.Sleep(windows.Fresh)
		var source busy
		go func() { _, _ = c.GetOrCompute(t.Context(), "slow", source.compute(10*time.Second)) }()
		synctest.Wait()
		for _, key := range []string{"behind", "refreshed"} {
			began := time.Now()
			r, err := c.Lookup(t.Context(), key, source.compute(time.Second))
			require.NoError(t, err)
			assert.Equal(t, cache.Stale, r.Outcome)
			assert.Zero(t, time.Since(began))
		}
		began := time.Now()
		_, err := c.Lookup(t.Context(), "absent", source.compute(time.Second))
		require.ErrorIs(t, err, recompute.ErrBusy)
		assert.Equal(t, 2*time.Second, time.Since(began))
		time.Sleep(20 * time.Second)
		r, err := c.Lookup(t.Context(), "absent", source.compute(time.Second))
		require.NoError(t, err)
		assert.Equal(t, cache.Hit, r.Outcome, "its turn came")
		assert.EqualValues(t, 1, source.most.Load())
	})
}

// A flight that waits for its turn is not blind to a value that comes from elsewhere.
func TestAFlightThatWaitsForRoomTakesAValueThatComes(t *testing.T) {
	for says, late := range map[string]time.Duration{"it is told": 0, "it looks, if it is not told": 750 * time.Millisecond} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := cache.NewMemory()
				store := cache.Store(m)
				if late > 0 {
					store = newQuiet(m)
				}
				o := cache.Options[string]{Policy: plain, MaxComputes: 1}
				c, other := open(t, store, o), open(t, m, o)
				var source busy
				go func() { _, _ = c.GetOrCompute(t.Context(), "slow", source.compute(10*time.Second)) }()
				synctest.Wait()
				began := time.Now()
				go func() {
					time.Sleep(time.Second)
					_, _ = other.GetOrCompute(t.Context(), "k", source.compute(time.Second))
				}()
				v, err := c.GetOrCompute(t.Context(), "k", nilCompute)
				require.NoError(t, err)
				assert.Equal(t, "v", v)
				assert.InDelta(t, 2*time.Second+late/2, time.Since(began), float64(late/2))
				time.Sleep(10 * time.Second)
			})
		})
	}
}

// Guarantee 22: a computation that asks for other keys is one computation.
func TestComputationsThatAskForOthersDoNotWaitForEachOthersRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: plain, MaxComputes: 2, Wait: time.Minute, Limit: time.Minute})
		var source busy
		nested := func(ctx context.Context) (string, error) {
			time.Sleep(time.Second)
			return c.GetOrCompute(ctx, "shared", source.compute(time.Second))
		}
		var callers sync.WaitGroup
		began := time.Now()
		for i := range 2 {
			callers.Go(func() {
				_, err := c.GetOrCompute(t.Context(), fmt.Sprint("outer", i), nested)
				assert.NoError(t, err)
			})
		}
		time.Sleep(500 * time.Millisecond)
		callers.Go(func() { // an outsider, who waits for room with the flight that the two will want
			_, err := c.GetOrCompute(t.Context(), "shared", source.compute(time.Second))
			assert.NoError(t, err)
		})
		callers.Wait()
		assert.Equal(t, 2*time.Second, time.Since(began))
	})
}

// Guarantee 8: what ignores its context keeps its room, so that an origin that hangs does not fill the process.
func TestAHungComputationKeepsItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: plain, MaxComputes: 3, Limit: time.Second})
		forever := make(chan struct{})
		var runs atomic.Int64
		hung := func(context.Context) (string, error) { runs.Add(1); <-forever; return "", nil }
		for i := range 200 {
			_, err := c.GetOrCompute(t.Context(), fmt.Sprint(i), hung)
			require.Error(t, err)
		}
		synctest.Wait()
		assert.EqualValues(t, 3, runs.Load())
		assert.Less(t, runtime.NumGoroutine(), 100, "no pile of goroutines")
		assert.Greater(t, c.Oldest(), time.Minute, "a health check sees it")
		close(forever)
		synctest.Wait()
		v, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { return "v", nil })
		require.NoError(t, err)
		assert.Equal(t, "v", v)
	})
}

// The room is free after every exit, also of a computation that keeps its result to itself.
func TestRoomIsFreeAfterEveryExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: plain, MaxComputes: 1, Limit: 10 * time.Second})
		var part sync.WaitGroup
		for i, compute := range []cache.Compute[string]{
			func(context.Context) (string, error) { return "", errDown },
			func(context.Context) (string, error) { return "", cache.ErrNotFound },
			func(context.Context) (string, error) { panic("oh") },
			func(context.Context) (string, error) { runtime.Goexit(); return "", nil },
			func(ctx context.Context) (string, error) { cache.NoStore(ctx); return "", nil },
			func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() },
			func(ctx context.Context) (string, error) {
				part.Add(1)
				defer part.Done()
				cache.Pass(ctx, 5*time.Second)
				time.Sleep(time.Minute)
				return "", nil
			},
		} {
			for range 2 {
				_, _ = c.GetOrCompute(t.Context(), fmt.Sprint(i), compute)
				began := time.Now()
				v, err := c.GetOrCompute(t.Context(), fmt.Sprint("after", began, i), func(context.Context) (string, error) { return "v", nil })
				require.NoError(t, err, i)
				require.Equal(t, "v", v)
				require.Zero(t, time.Since(began), i)
			}
		}
		part.Wait()
	})
}

// What is computed behind an answer, or asked for once the computation is over, is not a part of it.
func TestOnlyWhatAComputationWaitsForSharesItsRoom(t *testing.T) {
	ask := func(c *cache.Cache[string], ctx context.Context, source *busy) {
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() { _, _ = c.GetOrCompute(ctx, fmt.Sprint(i), source.compute(time.Second)) })
		}
		all.Wait()
	}
	for says, computation := range map[string]func(c *cache.Cache[string], ctx context.Context, source *busy){
		"behind the answer": func(c *cache.Cache[string], ctx context.Context, source *busy) {
			for i := range 10 {
				assert.NoError(t, c.Set(ctx, fmt.Sprint(i), "old"))
			}
			time.Sleep(windows.Fresh)
			ask(c, ctx, source)
		},
		"after it has returned": func(c *cache.Cache[string], ctx context.Context, source *busy) {
			go func() {
				time.Sleep(time.Second)
				ask(c, context.WithoutCancel(ctx), source)
			}()
		},
		"after it has kept its result to itself": func(c *cache.Cache[string], ctx context.Context, source *busy) {
			cache.Pass(ctx, 5*time.Second)
			time.Sleep(time.Second)
			ask(c, ctx, source)
		},
	} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := open(t, cache.NewMemory(), cache.Options[string]{Policy: windows, MaxComputes: 2, Limit: time.Hour})
				var source busy
				_, _ = c.GetOrCompute(t.Context(), "k", func(ctx context.Context) (string, error) {
					computation(c, ctx, &source)
					return "v", nil
				})
				time.Sleep(time.Minute)
				ask(c, t.Context(), &source)
				assert.LessOrEqual(t, source.most.Load(), int64(2))
				assert.NotZero(t, source.runs.Load())
			})
		})
	}
}

// The room of a computation is taken for as long as something runs that it has asked for, even if it is itself over.
func TestWhatAComputationHasAskedForKeepsItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: plain, MaxComputes: 1, Limit: time.Minute})
		var source busy
		_, err := c.GetOrCompute(t.Context(), "outer", func(ctx context.Context) (string, error) {
			hurried, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return c.GetOrCompute(hurried, "inner", source.compute(10*time.Second))
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		began := time.Now()
		_, err = c.GetOrCompute(t.Context(), "other", source.compute(time.Second))
		require.NoError(t, err)
		assert.EqualValues(t, 1, source.most.Load())
		assert.Equal(t, 10*time.Second, time.Since(began))
	})
}
