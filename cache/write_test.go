package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

func TestGetNeverComputes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: windows})
		get := func(i int) (cache.Result[string], error) { return f.replicas[i].Get(t.Context(), "k") }
		_, err := get(0)
		require.ErrorIs(t, err, cache.ErrNotFound)
		f.store("k", "v")
		r, err := get(1)
		require.NoError(t, err)
		require.Equal(t, cache.Result[string]{Value: "v", Outcome: cache.Hit}, r)
		time.Sleep(windows.Fresh)
		r, err = get(1)
		require.NoError(t, err)
		require.Equal(t, cache.Result[string]{Value: "v", Outcome: cache.Stale, Age: windows.Fresh}, r)
		time.Sleep(windows.WhileRevalidate)
		_, err = get(0)
		require.ErrorIs(t, err, cache.ErrNotFound, "the last window is for trouble, and there is none")
		synctest.Wait()
		assert.Zero(t, f.runs.Load())
		assert.Zero(t, f.calls.Load())
	})
}

func TestSetReplacesWhateverIsThereForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: windows})
		values(t, "v1", []reply{f.ask(0, "k")})
		require.NoError(t, f.replicas[1].Set(t.Context(), "k", "set"))
		values(t, "set", f.crowd(3, "k"))
		time.Sleep(windows.Fresh)
		require.NoError(t, f.replicas[0].Set(t.Context(), "k", "again"))
		for _, r := range f.crowd(3, "k") {
			values(t, "again", []reply{r})
			require.Equal(t, cache.Hit, r.Outcome)
		}
		assert.EqualValues(t, 1, f.runs.Load())
	})
}

// A computation under way can't overwrite what was set, and whoever asks after Set does not get its result.
func TestSetWinsOverAComputationUnderWay(t *testing.T) {
	for _, at := range []int{0, 1} {
		for _, age := range []time.Duration{0, windows.Fresh, windows.Fresh + windows.WhileRevalidate} {
			t.Run(fmt.Sprint("set at ", at, " after ", age), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, 2, cache.Options[string]{Policy: windows})
					if age > 0 {
						f.store("k", "old")
						time.Sleep(age)
					}
					gate := make(chan struct{})
					under := join(f, 0, 3, f.gated(gate))
					require.NoError(t, f.replicas[at].Set(t.Context(), "k", "set"))
					values(t, "set", f.crowd(5, "k"))
					close(gate)
					for _, r := range wait(under...) {
						require.NoError(t, r.err)
					}
					synctest.Wait()
					f.stands("k", "set")
				})
			})
		}
	}
}

// Whoever waits in another process is served by a Set at once.
func TestSetServesThoseWhoWaitElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		f.takes = 20 * time.Second
		join(f, 0, 1, f.compute)
		waits := join(f, 1, 5, f.compute)
		time.Sleep(time.Second)
		require.NoError(t, f.replicas[0].Set(t.Context(), "k", "set"))
		for _, r := range wait(waits...) {
			values(t, "set", []reply{r})
			require.Equal(t, time.Second, r.took)
		}
	})
}

// Case 71: those who waited when it was deleted get a real value; never nothing.
func TestADeletionUnderWayNeverYieldsAZeroValue(t *testing.T) {
	for _, at := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 2, cache.Options[string]{Policy: plain})
			waits := append(join(f, 0, 3, f.compute), join(f, 1, 3, f.compute)...)
			time.Sleep(f.takes / 2)
			require.NoError(t, f.replicas[at].Delete(t.Context(), "k"))
			for _, r := range wait(waits...) {
				require.NoError(t, r.err)
				require.Contains(t, []string{"v1", "v2", "v3"}, r.Value)
			}
			assert.LessOrEqual(t, f.runs.Load(), int64(3))
		})
	}
}

// Case 70, in the words of the report: a revoked role does not come back.
func TestADeletedValueDoesNotComeBack(t *testing.T) {
	for _, at := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 2, cache.Options[string]{Policy: windows})
			role := "admin"
			gate := make(chan struct{})
			slow := func(context.Context) (string, error) { r := role; <-gate; return r, nil }
			quick := func(context.Context) (string, error) { return role, nil }
			under := join(f, 0, 1, slow)
			role = "guest"
			require.NoError(t, f.replicas[at].Delete(t.Context(), "k"))
			close(gate)
			values(t, "admin", wait(under...)) // who asked before
			f.stands("k", "")
			values(t, "guest", f.crowdFor(5, "k", quick)())
			f.stands("k", "guest")
		})
	}
}

// Case 72: the order is: change the source, then delete. The other way round, an old value may stay.
func TestDeleteBelongsAfterTheChangeOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain})
		row := "old"
		load := func(context.Context) (string, error) { return row, nil }
		require.NoError(t, f.replicas[0].Delete(t.Context(), "k")) // too early
		values(t, "old", f.crowdFor(1, "k", load)())
		row = "new"
		values(t, "old", f.crowdFor(1, "k", load)())
		require.NoError(t, f.replicas[0].Delete(t.Context(), "k")) // a second one helps
		values(t, "new", f.crowdFor(1, "k", load)())
	})
}

func TestDeleteTakesManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		for i := range 10 {
			f.store(fmt.Sprint("k", i), "v")
		}
		require.NoError(t, f.replicas[1].Delete(t.Context(), "k0", "k3", "k3", "none", "k7"))
		for i := range 10 {
			f.stands(fmt.Sprint("k", i), map[bool]string{false: "v"}[i == 0 || i == 3 || i == 7])
		}
		require.NoError(t, f.replicas[0].Delete(t.Context()))
	})
}

// Trouble with the store is an error of Set, Delete and Get (case 51), as it is none of Lookup.
func TestSetDeleteAndGetReportTroubleWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var broken atomic.Value
		broken.Store("")
		store := &shim{Memory: m, before: func(_ context.Context, step string) error {
			if step == broken.Load() {
				return errDown
			}
			return nil
		}}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, store)
		c := f.replicas[0]
		for _, step := range []string{"begin", "set"} {
			broken.Store(step)
			require.ErrorIs(t, c.Set(t.Context(), "k", "v"), errDown)
		}
		broken.Store("delete")
		require.ErrorIs(t, c.Delete(t.Context(), "k"), errDown)
		broken.Store("get")
		_, err := c.Get(t.Context(), "k")
		require.ErrorIs(t, err, errDown)
		require.False(t, errors.Is(err, cache.ErrNotFound), "an error is no miss")
	})
}

// Two write at once: one of them wins, both are content.
func TestConcurrentSetsLeaveOneWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() { assert.NoError(t, f.replicas[i%2].Set(t.Context(), "k", fmt.Sprint("set ", i))) })
		}
		all.Wait()
		r, err := f.replicas[0].Get(t.Context(), "k")
		require.NoError(t, err)
		f.stands("k", r.Value)
	})
}

// A cooldown is about computing, not about knowing better.
func TestSetEndsACooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := plain
		policy.Cooldown = time.Minute
		f := newFleet(t, 2, cache.Options[string]{Policy: policy})
		f.down.Store(true)
		require.ErrorIs(t, f.ask(0, "k").err, errDown)
		require.NoError(t, f.replicas[0].Set(t.Context(), "k", "set"))
		values(t, "set", f.crowd(3, "k"))
		require.NoError(t, f.replicas[0].Delete(t.Context(), "k"))
		f.down.Store(false)
		values(t, "v2", f.crowd(3, "k"))
	})
}
