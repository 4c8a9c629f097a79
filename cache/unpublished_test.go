package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// Case 42; a store that takes no writes still answers.
func TestWhileTheStoreTakesNoWritesAValueIsComputedOnceInItsLifetime(t *testing.T) {
	for says, meanwhile := range map[string]bool{"from before it is computed": false, "from then on": true} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refuses atomic.Bool
				refuses.Store(!meanwhile)
				store := &shim{Memory: cache.NewMemory(), before: func(_ context.Context, step string) error {
					if refuses.Load() && step != "get" && step != "delete" {
						return fmt.Errorf("%w: OOM", cache.ErrRefused)
					}
					return nil
				}}
				c := open(t, store, cache.Options[string]{Policy: windows})
				synctest.Wait()
				tally, runs := tallied(100*time.Millisecond, "v")
				compute := func(ctx context.Context) (string, error) {
					refuses.CompareAndSwap(false, runs.Load() == 0)
					return tally(ctx)
				}
				for range 100 {
					ask(t, c, compute)
					time.Sleep(100 * time.Millisecond)
				}
				assert.EqualValues(t, 1, runs.Load())
				time.Sleep(windows.Fresh)
				assert.Equal(t, cache.Computed, ask(t, c, compute).Outcome, "after that a miss is a miss")
				require.NoError(t, c.Delete(t.Context(), "k"))
				assert.Equal(t, cache.Computed, ask(t, c, compute).Outcome)
				refuses.Store(false)
				ask(t, c, compute)
				time.Sleep(time.Second)
				assert.Equal(t, cache.Hit, ask(t, c, compute).Outcome, "published as soon as that can be done")
				assert.EqualValues(t, 4, runs.Load())
			})
		})
	}
}

// Nor does a store that still has what is served no more (Policy.Keep) hide what was computed since.
func TestAValueThatIsOnlyKeptHidesNoneThatCouldNotBePublished(t *testing.T) {
	var refuses atomic.Bool // (in real time: a caller who looks again and again would stop that of a bubble)
	store := &shim{Memory: cache.NewMemory(), before: func(_ context.Context, step string) error {
		if refuses.Load() && step != "get" {
			return fmt.Errorf("%w: OOM", cache.ErrRefused)
		}
		return nil
	}}
	o := cache.Options[string]{Policy: stale.Policy{Fresh: time.Millisecond, Keep: time.Hour}, Wait: 10 * time.Second}
	heard := make(chan struct{})
	o.Trace.Push = func(bool, error) { close(heard) }
	c := open(t, store, o)
	<-heard // before, nothing can be relied on
	require.NoError(t, c.Set(t.Context(), "k", "kept"))
	require.Eventually(t, func() bool {
		_, err := c.Get(t.Context(), "k")
		return errors.Is(err, cache.ErrNotFound) // it is only kept
	}, 5*time.Second, time.Millisecond)
	refuses.Store(true)
	runs := 0
	compute := func(ctx context.Context) (string, error) {
		runs++
		return "new", cache.Lasting(ctx, stale.Policy{Fresh: time.Hour})
	}
	assert.Equal(t, cache.Computed, ask(t, c, compute).Outcome)
	for range 10 {
		r := ask(t, c, compute)
		assert.Equal(t, "new", r.Value)
		assert.Equal(t, cache.Stale, r.Outcome)
	}
	assert.Equal(t, 1, runs)
	r, err := c.Refresh(t.Context(), "k", compute)
	require.NoError(t, err)
	assert.Equal(t, cache.Computed, r.Outcome)
	assert.Equal(t, 2, runs)
}

// What a computation could not publish is no better known than what was written elsewhere after it began.
func TestAWriteElsewhereIsNotForgottenForWhatBeganBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		c, other := open(t, o, cache.Options[string]{Policy: plain}), open(t, o.Memory, cache.Options[string]{Policy: plain})
		before, _ := tallied(time.Second, "before")
		go func() { _, _ = c.GetOrCompute(t.Context(), "k", before) }()
		time.Sleep(time.Second / 2)
		require.NoError(t, other.Set(t.Context(), "k", "written"))
		o.begin(errDown)
		time.Sleep(time.Second)
		compute, runs := tallied(0, "after")
		assert.Equal(t, "after", ask(t, c, compute).Value)
		assert.EqualValues(t, 1, runs.Load())
	})
}

// Whatever that was begun under: numbers are in the order of beginnings.
func TestAWriteElsewhereThatBeganBeforeEndsWhatCouldNotBePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		c, other := open(t, o, cache.Options[string]{Policy: plain, Locker: new(recompute.Local)}), open(t, o.Memory, cache.Options[string]{Policy: plain})
		o.before = func(_ context.Context, step string) error {
			if step == "set" || o.why.Load() != nil {
				return errNobody
			}
			return nil
		}
		written, _ := tallied(time.Second, "written")
		go func() { _, _ = other.GetOrCompute(t.Context(), "k", written) }()
		time.Sleep(200 * time.Millisecond)
		unpublished, _ := tallied(300*time.Millisecond, "unpublished")
		assert.Equal(t, "unpublished", ask(t, c, unpublished).Value)
		time.Sleep(time.Second)
		o.begin(errNobody)
		after, _ := tallied(0, "after")
		assert.Equal(t, "after", ask(t, c, after).Value)
	})
}

// Nor for what this process has read since, if it does not hear what is written elsewhere.
func TestWhatCouldNotBePublishedDoesNotHideWhatWasReadSince(t *testing.T) {
	for says, fails := range map[string]string{"no fence": "begin", "not written": "set"} {
		t.Run(says, func(t *testing.T) {
			cut(t, windows, func(t *testing.T, o *outage, c, other *cache.Cache[string], _ cache.Compute[string], _ *atomic.Int64) {
				o.disconnect()
				o.before = func(_ context.Context, step string) error {
					if why := o.why.Load(); step == fails || why != nil && step == "get" {
						return errNobody
					}
					return nil
				}
				time.Sleep(windows.Fresh)
				before, _ := tallied(time.Second, "before")
				ask(t, c, before)
				time.Sleep(500 * time.Millisecond)
				require.NoError(t, other.Set(t.Context(), "k", "written"))
				require.Equal(t, "written", ask(t, c, nilCompute).Value)
				time.Sleep(time.Second)
				o.begin(errNobody)
				assert.Equal(t, "written", ask(t, c, nilCompute).Value)
			})
		})
	}
}

// The store takes a fence for each attempt, and refuses each result.
func TestResultsThatTheStoreDoesNotTakeAreNotComputedAgainAtOnce(t *testing.T) {
	for says, near := range map[string]int{"with last known values": 0, "without": -1} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOutage()
				c := open(t, o, cache.Options[string]{Near: near, Policy: stale.Policy{Fresh: time.Second, WhileRevalidate: time.Hour}})
				synctest.Wait()
				require.NoError(t, c.Set(t.Context(), "k", "old"))
				time.Sleep(2 * time.Second)
				o.before = func(_ context.Context, step string) error {
					if step == "set" {
						return errDown
					}
					return nil
				}
				compute, runs := tallied(15*time.Millisecond, "new") // and ends when nobody just asks
				for range 3000 {
					ask(t, c, compute)
					time.Sleep(10 * time.Millisecond)
				}
				assert.EqualValues(t, 5, runs.Load(), "at 0, 1, 3, 7 and 15 s")
			})
		})
	}
}

// Nor is the store asked with each stale answer whether it takes something now.
func TestAStoreThatTakesNothingIsAskedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		c := open(t, o, cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute, WhileRevalidate: time.Hour}})
		synctest.Wait()
		require.NoError(t, c.Set(t.Context(), "k", "old"))
		time.Sleep(2 * time.Minute)
		asked := 0
		o.before = func(_ context.Context, step string) error {
			switch step {
			case "begin":
				asked++
				fallthrough
			case "set":
				return fmt.Errorf("%w: OOM", cache.ErrRefused)
			}
			return nil
		}
		compute, runs := tallied(10*time.Millisecond, "new")
		for range 1000 {
			ask(t, c, compute)
			time.Sleep(10 * time.Millisecond)
		}
		assert.EqualValues(t, 1, runs.Load())
		assert.InDelta(t, 40, asked, 4, "four times a second")
	})
}
