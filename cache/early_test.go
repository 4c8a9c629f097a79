package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

// A key in demand is renewed before it runs out, by one process, and nobody waits.
func TestAKeyInDemandIsRenewedBeforeItRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eager := stale.Policy{Fresh: time.Minute, Beta: 1}
		f := newFleet(t, 4, cache.Options[string]{Policy: eager})
		f.takes = 2 * time.Second
		require.NoError(t, f.ask(0, "k").err)
		for i := range 40 * 600 { // ten lives long
			r := f.ask(i%4, "k")
			require.NoError(t, r.err)
			require.Equal(t, cache.Hit, r.Outcome, "after %v", r.Age)
			require.Zero(t, r.took)
			time.Sleep(25 * time.Millisecond)
		}
		assert.EqualValues(t, 1, f.most.Load(), "one at a time in the fleet")
		assert.GreaterOrEqual(t, f.runs.Load(), int64(10))
		assert.LessOrEqual(t, f.runs.Load(), int64(21), "never in the first half of a life")
	})
}

func TestWithoutBetaNothingIsRenewedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		f.takes = 2 * time.Second
		require.NoError(t, f.ask(0, "k").err)
		for i := range 590 {
			require.Equal(t, cache.Hit, f.ask(i%2, "k").Outcome)
			time.Sleep(100 * time.Millisecond)
		}
		assert.EqualValues(t, 1, f.runs.Load())
	})
}

// The cost that the head start depends on comes along with the entry: whoever reads it knows.
func TestAReplicaThatNeverComputedRenewsEarlyToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eager := stale.Policy{Fresh: time.Minute, Beta: 1}
		f := newFleet(t, 2, cache.Options[string]{Policy: eager})
		f.takes = 5 * time.Second
		require.NoError(t, f.ask(0, "k").err)
		for f.runs.Load() == 1 {
			r := f.ask(1, "k")
			require.Equal(t, cache.Hit, r.Outcome)
			require.Less(t, r.Age, time.Minute)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		time.Sleep(f.takes)
		synctest.Wait()
		f.stands("k", "v2")
	})
}
