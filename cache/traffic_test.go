package cache_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// tally counts the steps of a store. A step takes a millisecond, as on a server.
type tally struct {
	mu    sync.Mutex
	steps map[string]int
}

func (c *tally) step(_ context.Context, step string) error {
	time.Sleep(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steps == nil {
		c.steps = map[string]int{}
	}
	c.steps[step]++
	return nil
}

// since returns the steps since the last time.
func (c *tally) since() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer clear(c.steps)
	return maps.Clone(c.steps)
}

// Case 12: what a wave costs the store, however many callers it has.
func TestAWaveCostsTheStoreAFewSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var c tally
		counting := &locks{Locker: m.Locker()}
		f := fleetOver(t, m, cache.Options[string]{Policy: windows, Locker: counting}, &shim{Memory: m, before: c.step})

		values(t, "v1", f.crowd(100, "k")) // misses: one reads, the others share the next read or its flight
		assert.Equal(t, map[string]int{"get": 1, "begin": 1, "set": 1}, c.since())
		assert.EqualValues(t, 1, counting.acquired.Load())

		values(t, "v1", f.crowd(100, "k")) // hits: one reads, the others share the next read
		assert.Equal(t, map[string]int{"get": 2}, c.since())

		values(t, "v1", []reply{f.ask(0, "k")})
		assert.Equal(t, map[string]int{"get": 1}, c.since(), "a hit is one step")

		values(t, "v2", []reply{f.ask(0, "another")})
		assert.Equal(t, map[string]int{"get": 1, "begin": 1, "set": 1}, c.since(), "a miss is three and the lease")

		time.Sleep(windows.Fresh)
		values(t, "v1", f.crowd(100, "k"))
		time.Sleep(time.Second)
		assert.Equal(t, map[string]int{"get": 2, "begin": 1, "set": 1}, c.since(), "stale: nobody waits, one refreshes")

		f.down.Store(true)
		require.Error(t, f.ask(0, "fails").err)
		assert.Equal(t, map[string]int{"get": 1, "begin": 1, "fail": 1}, c.since())
	})
}

// Waiting for a holder that is alive costs nothing: its renewals are heard.
func TestWaitingForALiveHolderCostsNoSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var c tally
		counting := &locks{Locker: m.Locker()}
		store := &shim{Memory: m, before: c.step}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain, Locker: counting}, fill(5, cache.Store(store))...)
		f.takes = 25 * time.Second // more than ten leases
		values(t, "v1", f.crowd(20, "k"))
		assert.Equal(t, map[string]int{"get": 5, "begin": 1, "set": 1}, c.since())
		assert.EqualValues(t, 5, counting.acquired.Load())
	})
}

// Case 35: contention is no failure, and is counted apart.
func TestContentionIsCountedApartFromFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held, failed, acquired int
		var mu sync.Mutex
		hook := func(n *int) { mu.Lock(); defer mu.Unlock(); *n++ }
		o := cache.Options[string]{Policy: plain}
		o.Trace.Lease = recompute.Trace{
			Acquired: func(time.Duration) { hook(&acquired) },
			Held:     func() { hook(&held) },
			Failed:   func(error) { hook(&failed) },
		}
		m := cache.NewMemory()
		caches := make([]*cache.Cache[string], 2)
		for i := range caches {
			c, err := cache.New(m, o)
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			caches[i] = c
		}
		var all sync.WaitGroup
		for _, c := range caches {
			all.Go(func() {
				v, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { time.Sleep(time.Second); return "v", nil })
				assert.NoError(t, err)
				assert.Equal(t, "v", v)
			})
		}
		all.Wait()
		assert.Equal(t, []int{1, 1, 0}, []int{acquired, held, failed})
	})
}

// Case 75: a thousand hot keys are purged under two thousand callers.
func TestAPurgeOfManyHotKeysComputesEachOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 1000
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		f.takes = 100 * time.Millisecond
		names := make([]string, keys)
		for i := range names {
			names[i] = fmt.Sprint("k", i)
			f.store(names[i], "hot")
		}
		require.NoError(t, f.replicas[0].Delete(t.Context(), names...))
		var all sync.WaitGroup
		for i := range 2 * keys {
			all.Go(func() {
				r := f.ask(i%2, names[i/2])
				assert.NoError(t, r.err)
				assert.LessOrEqual(t, r.took, f.takes)
			})
		}
		all.Wait()
		assert.EqualValues(t, keys, f.runs.Load())
	})
}

// Guarantee 14 under pressure: background work is counted in, and no reader waits for it, at any moment.
func TestNoReaderEverWaitsForARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eager := windows
		eager.Beta = 100 // refreshes all the time
		f := newFleet(t, 2, cache.Options[string]{Policy: eager})
		require.NoError(t, f.ask(0, "k").err)
		time.Sleep(windows.Fresh / 2)
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				for range 300 {
					r := f.ask(i%2, "k")
					if r.err != nil || r.took > 0 {
						assert.Fail(t, "waited", "%+v", r)
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		all.Wait()
		synctest.Wait()
	})
}
