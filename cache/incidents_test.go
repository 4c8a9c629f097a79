package cache_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

// Case 102: all computations fail for 5 s under 500 calls a second on hot keys. Nothing is deleted for it, the source is asked less, not
// more, and afterwards all is well by itself within seconds.
func TestWhileTheSourceFailsItIsAskedLessAndTheKeysStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 20
		f := newFleet(t, 4, cache.Options[string]{Policy: stale.Policy{Fresh: time.Second, WhileRevalidate: time.Minute, IfError: time.Hour}})
		f.takes = 50 * time.Millisecond
		load := func(lasts time.Duration) (runs int64) {
			before := f.runs.Load()
			for i := range int(lasts / (2 * time.Millisecond)) {
				r := f.ask(i/keys%len(f.replicas), fmt.Sprint("k", i%keys))
				require.NoError(t, r.err)
				time.Sleep(2*time.Millisecond - min(r.took, 2*time.Millisecond))
			}
			return f.runs.Load() - before
		}
		load(2 * time.Second)
		healthy := load(5 * time.Second)
		f.down.Store(true)
		failing := load(5 * time.Second)
		f.down.Store(false)
		assert.Less(t, failing, healthy)
		load(5 * time.Second)
		assert.GreaterOrEqual(t, load(5*time.Second), healthy*9/10, "as before")
		for i := range keys {
			r := f.ask(0, fmt.Sprint("k", i))
			assert.Less(t, r.Age, 2*time.Second)
		}
		t.Logf("%d computations in 5 s, then %d that failed", healthy, failing)
	})
}

// crowded is a source that takes 20 ms for each computation under way.
func (f *fleet) crowded(ctx context.Context) (string, error) {
	n := f.enter()
	defer f.now.Add(-1)
	return fmt.Sprint("v", n), pause(ctx, 20*time.Millisecond*time.Duration(f.now.Load()))
}

// Case 103: half of the keys are lost at peak, the source gets slower the more is asked of it, and callers who have no value in 300 ms
// try again, twice. Each key is computed once, for its callers have gone but their work is kept; and with the load as it was, all is well
// as soon as the source can have done its part.
func TestASlowSourceIsNotKeptSlowByThoseWhoGaveUp(t *testing.T) {
	for name, most := range map[string]int{"no bound": 0, "MaxComputes": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const keys, lost = 200, 100
				f := newFleet(t, 4, cache.Options[string]{Policy: plain, MaxComputes: most})
				for i := range keys {
					f.store(fmt.Sprint("k", i), "v")
				}
				began := time.Now()
				over := func() bool { return time.Since(began) > 10*time.Second }
				var mu sync.Mutex
				var trouble time.Duration // how long after the loss the last caller gave up
				var all sync.WaitGroup
				for n := range 200 {
					all.Go(func() {
						for i := n; !over(); i += 7 {
							for range 3 {
								ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
								r := f.askFor(ctx, n%4, fmt.Sprint("k", i%keys), f.crowded)
								cancel()
								if r.err == nil {
									break
								}
								assert.ErrorIs(t, r.err, context.DeadlineExceeded)
								mu.Lock()
								trouble = max(trouble, time.Since(began))
								mu.Unlock()
							}
							time.Sleep(100 * time.Millisecond)
						}
					})
				}
				for i := range lost {
					require.NoError(t, f.replicas[0].Delete(t.Context(), fmt.Sprint("k", 2*i)))
				}
				all.Wait()
				assert.EqualValues(t, lost, f.runs.Load(), "each once")
				if most > 0 {
					assert.LessOrEqual(t, f.most.Load(), int64(4*most), "computations at once")
				}
				assert.LessOrEqual(t, trouble, 4*time.Second, "the source needs 2 s at least")
				t.Logf("trouble for %v, %d computations at once", trouble, f.most.Load())
			})
		})
	}
}

// Case 106 a: from 12 h the lifetime is lowered to 2 h. What is stored keeps the lifetime that it was stored with, so the load on the source
// does not jump; it rises by the ratio as the entries are renewed.
func TestAShorterLifetimeRaisesTheLoadByTheRatioAndNotAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 720
		long, short := stale.Policy{Fresh: 12 * time.Hour, Jitter: 0.1}, stale.Policy{Fresh: 2 * time.Hour, Jitter: 0.1}
		before := newFleet(t, 2, cache.Options[string]{Policy: long})
		after := fleetOver(t, before.memory, cache.Options[string]{Policy: short}, before.memory, before.memory)
		before.takes, after.takes = 0, 0
		hour := func(f *fleet, known int) int64 {
			runs := f.runs.Load()
			for range 12 { // each key every five minutes
				for k := range known {
					require.NoError(t, f.ask(k%2, fmt.Sprint("k", k)).err)
				}
				time.Sleep(5 * time.Minute)
			}
			return f.runs.Load() - runs
		}
		for h := range 12 { // keys come one by one
			hour(before, keys*(h+1)/12)
		}
		var usual int64
		for range 12 {
			usual += hour(before, keys)
		}
		usual /= 12
		var load []int64
		for range 24 {
			load = append(load, hour(after, keys))
		}
		t.Log("computations an hour:", usual, "then", load)
		for h, runs := range load {
			assert.LessOrEqual(t, runs, usual*6*14/10, "hour %d", h)
		}
		assert.LessOrEqual(t, load[0], usual*3/2, "no spike")
		assert.LessOrEqual(t, load[1], usual*3/2, "no spike")
		assert.GreaterOrEqual(t, load[22]+load[23], usual*2*5, "the ratio, in the end")
	})
}
