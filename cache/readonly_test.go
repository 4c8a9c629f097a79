package cache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

// readOnly is a store that answers reads and takes no writes, as a primary that was made a replica, while refuses holds.
func readOnly(m *cache.Memory, refuses *atomic.Bool) (*shim, *locks) {
	refuse := func(ctx context.Context, step string) error {
		if refuses.Load() && step != "get" {
			return fmt.Errorf("%w: READONLY", cache.ErrRefused)
		}
		return nil
	}
	s := &shim{Memory: m, prompt: true, before: refuse}
	return s, &locks{Locker: m.Locker(), acquire: func(ctx context.Context) error { return refuse(ctx, "acquire") }}
}

// Case 106 b: for a minute the primary refuses writes while reads work. What is there is served, what is missing is computed once by
// each process for its lifetime, and nobody waits for a lock that can't be had.
func TestAStoreThatTakesNoWritesIsReadAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var refuses atomic.Bool
		s, l := readOnly(m, &refuses)
		long := windows
		long.WhileRevalidate = time.Hour
		f := fleetOver(t, m, cache.Options[string]{Policy: long, Locker: l}, s, s, s)
		f.store("hit", "there")
		f.store("stale", "old")
		time.Sleep(windows.Fresh - 10*time.Second)
		f.store("hit", "there")
		refuses.Store(true)
		for began := time.Now(); time.Since(began) < time.Minute-10*time.Second; time.Sleep(100 * time.Millisecond) {
			values(t, "there", f.crowd(2, "hit"))
			for _, r := range f.crowd(2, "stale") {
				require.NoError(t, r.err)
				require.Zero(t, r.took, "nobody waits who need not")
			}
			for _, r := range f.crowd(2, "missing") {
				require.NoError(t, r.err)
				require.LessOrEqual(t, r.took, f.takes)
			}
		}
		assert.EqualValues(t, 3*2, f.runs.Load(), "missing, and behind stale, once on each")

		refuses.Store(false) // and it is as before, by itself
		time.Sleep(time.Second)
		values(t, "old", []reply{f.ask(0, "stale")})
		time.Sleep(time.Second)
		before := f.runs.Load()
		for _, r := range f.crowd(5, "stale") {
			require.Equal(t, cache.Hit, r.Outcome)
		}
		assert.Equal(t, before, f.runs.Load())
	})
}

// Where nothing can be kept in the process either, a value that can't be replaced is computed again after growing pauses, not at once.
func TestAResultThatNobodyCanKeepIsNotComputedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var refuses atomic.Bool
		s, l := readOnly(m, &refuses)
		f := fleetOver(t, m, cache.Options[string]{Policy: windows, Locker: l, Near: -1}, s, s, s)
		f.store("stale", "old")
		time.Sleep(windows.Fresh)
		refuses.Store(true)
		for range 500 {
			values(t, "old", f.crowd(2, "stale"))
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, f.runs.Load(), int64(3*6), "after 1, 2, 4, 8 and 16 s")
		assert.GreaterOrEqual(t, f.runs.Load(), int64(3*3))
	})
}
