package cache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// Case 108: Close during a computation, a wait, a refresh, an extension.
func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, cache.Options[string]{Policy: windows, Lease: time.Second})
		f.takes = 15 * time.Second
		f.store("stale", "old")
		time.Sleep(windows.Fresh)
		values(t, "old", []reply{f.ask(0, "stale")}) // a refresh
		var cause error
		computes := join(f, 0, 5, f.watched(&cause))
		waits := join(f, 1, 5, f.compute)
		others := join(f, 2, 5, f.compute)
		time.Sleep(10*time.Second + 400*time.Millisecond) // some extensions later
		began := time.Now()
		require.NoError(t, f.replicas[0].Close())
		require.NoError(t, f.replicas[1].Close())
		assert.Zero(t, time.Since(began), "at once")
		for _, r := range append(wait(computes...), wait(waits...)...) {
			require.ErrorIs(t, r.err, cache.ErrClosed)
		}
		assert.ErrorIs(t, cause, cache.ErrClosed)
		f.free("stale")
		for _, r := range wait(others...) {
			require.NoError(t, r.err)
			require.Equal(t, 10*time.Second+400*time.Millisecond+f.takes, r.took, "another process takes over at once")
		}
		for range 3 {
			require.NoError(t, f.replicas[0].Close(), "a second time is harmless")
		}
	})
}

func TestAfterCloseEveryCallSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := cache.Options[string]{Policy: windows}
		o.Fallback = func(context.Context, string, error) (string, error) { return "fallback", nil }
		f := newFleet(t, 1, o)
		f.store("k", "v")
		c := f.replicas[0]
		require.NoError(t, c.Close())
		for _, key := range []string{"k", "cold"} {
			require.ErrorIs(t, f.ask(0, key).err, cache.ErrClosed)
			_, err := c.Get(t.Context(), key)
			require.ErrorIs(t, err, cache.ErrClosed)
			require.ErrorIs(t, c.Set(t.Context(), key, "w"), cache.ErrClosed)
			require.ErrorIs(t, c.Delete(t.Context(), key), cache.ErrClosed)
		}
		assert.Zero(t, f.runs.Load())
		assert.Zero(t, c.Oldest())
	})
}

func TestCloseDoesNotWaitForEverForADeafComputation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		c, err := cache.New(m, cache.Options[string]{Policy: plain})
		require.NoError(t, err)
		release := make(chan struct{})
		var got error
		var call sync.WaitGroup
		call.Go(func() {
			_, got = c.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { <-release; return "v", nil })
		})
		synctest.Wait()
		began := time.Now()
		require.ErrorContains(t, c.Close(), "ignores its context")
		assert.Equal(t, 5*time.Second, time.Since(began))
		call.Wait()
		require.ErrorIs(t, got, cache.ErrClosed)
		lease, err := m.Locker().Acquire(t.Context(), "k", time.Second)
		require.NoError(t, err, "its lease has ended all the same")
		require.NoError(t, lease.Release(t.Context()))
		close(release)
		require.NoError(t, c.Close())
		_, err = m.Get(t.Context(), cache.Key{Name: "k", Schema: c.SchemaOf()})
		require.ErrorIs(t, err, cache.ErrNotFound, "nothing is written after Close")
	})
}

// Many close while many call: no panic, no hang, every call has a value or says that it is closed.
func TestCloseUnderLoad(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 2, cache.Options[string]{Policy: windows})
			f.takes = time.Millisecond
			var all sync.WaitGroup
			for i := range 200 {
				all.Go(func() {
					for range 20 {
						r := f.ask(i%2, string(rune('a'+i%7)))
						if r.err != nil {
							assert.ErrorIs(t, r.err, recompute.ErrClosed)
						}
						time.Sleep(time.Duration(i%5) * 300 * time.Microsecond)
					}
				})
			}
			for range 3 {
				all.Go(func() {
					time.Sleep(3 * time.Millisecond)
					assert.NoError(t, f.replicas[0].Close())
				})
			}
			all.Wait()
		})
	}
}

func TestANewCacheOverTheSameStoreGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, m)
		values(t, "v1", []reply{f.ask(0, "k")})
		require.NoError(t, f.replicas[0].Close())
		again := fleetOver(t, m, cache.Options[string]{Policy: plain}, m)
		r := again.ask(0, "k")
		values(t, "v1", []reply{r})
		assert.Equal(t, cache.Hit, r.Outcome)
	})
}
