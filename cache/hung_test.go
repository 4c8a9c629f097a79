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
	"github.com/bellwether-cache/bellwether/recompute"
)

const limit = 5 * time.Second

// Guarantee 8; cases 6 and 20.
func TestAComputationThatIgnoresItsContextBlocksNobodyAfterItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain, Limit: limit, Wait: time.Minute})
		forever := make(chan struct{})
		var cause error
		hung := func(ctx context.Context) (string, error) {
			f.enter()
			<-forever
			cause = context.Cause(ctx)
			return "too late", nil
		}
		here := f.crowdFor(50, "k", hung)
		time.Sleep(3 * time.Second)
		assert.GreaterOrEqual(t, max(f.replicas[0].Oldest(), f.replicas[1].Oldest()), 3*time.Second)
		all := here()
		for _, r := range all {
			require.ErrorIs(t, r.err, recompute.ErrLimit)
			require.LessOrEqual(t, r.took, 2*limit)
		}
		synctest.Wait()
		f.free("k")
		next := fmt.Sprint("v", f.runs.Load()+1) // the second process may have begun in the last moment
		assert.LessOrEqual(t, f.runs.Load(), int64(2))
		oldest := func() time.Duration { return max(f.replicas[0].Oldest(), f.replicas[1].Oldest()) }
		assert.GreaterOrEqual(t, oldest(), limit, "a health check sees it")

		for i := range f.replicas {
			began := time.Now()
			values(t, next, []reply{f.ask(i, "k")})
			assert.Less(t, time.Since(began), limit+2*time.Second)
		}
		close(forever)
		synctest.Wait()
		assert.ErrorIs(t, cause, recompute.ErrLimit)
		assert.Zero(t, oldest())
		f.stands("k", next) // what came too late is not stored
	})
}

// Case 6: callers with short contexts leave no queue behind.
func TestCallersOfAHungComputationReturnWhenTheirTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain, Limit: limit})
		release := make(chan struct{})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				r := f.askFor(ctx, 0, "k", f.deaf(release))
				assert.ErrorIs(t, r.err, context.DeadlineExceeded)
				assert.Equal(t, 100*time.Millisecond, r.took)
			})
		}
		all.Wait()
		assert.EqualValues(t, 1, f.runs.Load())
		time.Sleep(limit)
		values(t, "v2", []reply{f.ask(0, "k")})
		close(release)
		synctest.Wait()
		f.stands("k", "v2") // what came too late is not stored
	})
}

// Case 20: a hung computation does not keep its lease for ever.
func TestRenewalsEndWithTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain, Limit: limit, Wait: time.Minute})
		release := make(chan struct{})
		hung := join(f, 0, 1, f.deaf(release))
		time.Sleep(time.Second)
		r := f.ask(1, "k")
		values(t, "v2", []reply{r})
		assert.Equal(t, limit-time.Second+f.takes, r.took, "the limit ends the lease, no need to wait for its end")
		close(release)
		require.ErrorIs(t, wait(hung...)[0].err, recompute.ErrLimit)
		f.stands("k", "v2")
	})
}

// Case 68: the entry's times, the lease and the limit are independent.
func TestAnEntryMayLiveShorterThanItsComputationTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		brief := plain
		brief.Fresh = 50 * time.Millisecond
		f := newFleet(t, 2, cache.Options[string]{Policy: brief, Lease: 30 * time.Millisecond})
		all := f.crowd(20, "k")
		values(t, "v1", all)
		assert.EqualValues(t, 1, f.runs.Load())
		values(t, "v1", []reply{f.ask(0, "k")})
		time.Sleep(50 * time.Millisecond)
		values(t, "v2", []reply{f.ask(1, "k")})
	})
}

// Case 32: a lease ends with the computation, not with the value's lifetime.
func TestEveryRefreshGetsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		often := cache.Options[string]{Policy: windows}
		often.Policy.Fresh = 200 * time.Millisecond
		f := newFleet(t, 1, often)
		f.takes = time.Millisecond
		for range 30 {
			require.NoError(t, f.ask(0, "k").err)
			time.Sleep(100 * time.Millisecond)
		}
		assert.GreaterOrEqual(t, f.runs.Load(), int64(10))
	})
}

// Case 34: one key's trouble is not another's.
func TestASlowKeySlowsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		slow := &shim{Memory: m, before: func(ctx context.Context, step string) error {
			if ctx.Value(slowly{}) != nil {
				time.Sleep(2 * time.Second)
			}
			return nil
		}}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, slow, slow)
		f.takes = 10 * time.Millisecond
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() { f.askFor(context.WithValue(t.Context(), slowly{}, true), i%2, "slow", f.compute) })
		}
		synctest.Wait()
		for range 50 {
			for i := range f.replicas {
				r := f.ask(i, "quick")
				require.NoError(t, r.err)
				require.LessOrEqual(t, r.took, f.takes)
			}
			time.Sleep(100 * time.Millisecond)
		}
		all.Wait()
	})
}

type slowly struct{}
