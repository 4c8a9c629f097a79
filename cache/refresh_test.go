package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// Guarantee 14; case 60: 1,000 reads on each of two replicas, one refresh.
func TestAStaleValueIsRefreshedOnceByTheFleet(t *testing.T) {
	for _, takes := range []time.Duration{0, 300 * time.Millisecond, 20 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 2, cache.Options[string]{Policy: windows})
				f.takes = takes
				f.store("k", "old")
				time.Sleep(windows.Fresh)
				all := f.crowd(1000, "k")
				for _, r := range all {
					require.NoError(t, r.err)
					require.Zero(t, r.took, "nobody waits")
				}
				if takes > 0 {
					values(t, "old", all)
				}
				time.Sleep(takes)
				synctest.Wait()
				for range 100 {
					values(t, "v1", f.crowd(2, "k"))
				}
				assert.EqualValues(t, 1, f.runs.Load())
			})
		})
	}
}

// And costs the lock no command for each read.
func TestStaleReadsDoNotHammerTheLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		counting := &locks{Locker: m.Locker()}
		f := fleetOver(t, m, cache.Options[string]{Policy: windows, Locker: counting}, m, m)
		f.takes = 5 * time.Second
		f.store("k", "old")
		time.Sleep(windows.Fresh)
		for range 1000 {
			f.crowd(1, "k")
			time.Sleep(time.Millisecond)
		}
		assert.LessOrEqual(t, counting.acquired.Load(), int64(4))
	})
}

// A holder that died is succeeded within about a lease all the same.
func TestARefreshThatDiesIsSucceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 2 * time.Second
		f := newFleet(t, 1, cache.Options[string]{Policy: windows, Lease: lease})
		f.store("k", "old")
		time.Sleep(windows.Fresh)
		_, err := f.memory.Locker().Acquire(t.Context(), "k", lease) // and dies
		require.NoError(t, err)
		for began := time.Now(); f.runs.Load() == 0; {
			values(t, "old", []reply{f.ask(0, "k")})
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			require.LessOrEqual(t, time.Since(began), 2*lease)
		}
	})
}

// Guarantee 14: whoever wins the lease late looks again, and leaves what was published meanwhile.
func TestARefreshThatComesLateFindsTheNewValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		delayed := &locks{Locker: m.Locker(), acquire: func(ctx context.Context) error {
			if ctx.Value(slowly{}) != nil {
				time.Sleep(5 * time.Second)
			}
			return nil
		}}
		f := fleetOver(t, m, cache.Options[string]{Policy: windows, Locker: delayed}, m, m)
		f.store("k", "old")
		time.Sleep(windows.Fresh)
		values(t, "old", []reply{f.askFor(context.WithValue(t.Context(), slowly{}, true), 0, "k", f.compute)})
		values(t, "old", []reply{f.ask(1, "k")})
		time.Sleep(10 * time.Second)
		values(t, "v1", f.crowd(5, "k"))
		assert.EqualValues(t, 1, f.runs.Load())
	})
}

// Case 57: attempts are spaced by growing pauses that count from their ends; the one that works lands.
func TestAFailedRefreshIsTriedAgainAfterAGrowingPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := windows
		long.WhileRevalidate = time.Hour
		f := newFleet(t, 1, cache.Options[string]{Policy: long})
		f.store("k", "old")
		time.Sleep(long.Fresh)
		var began, ended []time.Time
		flaky := func(ctx context.Context) (string, error) {
			began = append(began, time.Now())
			defer func() { ended = append(ended, time.Now()) }()
			time.Sleep(5 * time.Second) // longer than the first pauses
			if len(began) < 6 {
				return "", errDown
			}
			return "new", nil
		}
		for range 1000 {
			r := f.askFor(t.Context(), 0, "k", flaky)
			require.NoError(t, r.err)
			require.Zero(t, r.took)
			if r.Value == "new" {
				break
			}
			require.Equal(t, cache.Stale, r.Outcome)
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		f.stands("k", "new")
		require.Len(t, began, 6)
		for i := 1; i < len(began); i++ {
			pause := began[i].Sub(ended[i-1])
			assert.GreaterOrEqual(t, pause, time.Second<<(i-1), "before attempt %d", i)
			assert.LessOrEqual(t, pause, time.Second<<(i-1)+100*time.Millisecond, "before attempt %d", i)
		}
		assert.Zero(t, f.replicas[0].Failing(), "success is not remembered")
	})
}

func TestPausesBetweenAttemptsHaveACeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := windows
		long.WhileRevalidate = 24 * time.Hour
		f := newFleet(t, 1, cache.Options[string]{Policy: long})
		f.down.Store(true)
		f.store("k", "old")
		time.Sleep(long.Fresh)
		for range 12 * 60 {
			values(t, "old", []reply{f.ask(0, "k")})
			time.Sleep(time.Minute + time.Second)
		}
		assert.EqualValues(t, 12*60, f.runs.Load(), "after a minute each is an attempt, never less")
	})
}

// Case 57, last part: a computation that takes longer than the value lives.
func TestARefreshMayTakeLongerThanTheLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		brief := stale.Policy{Fresh: time.Second, WhileRevalidate: 10 * time.Second}
		f := newFleet(t, 2, cache.Options[string]{Policy: brief})
		f.takes = 3 * time.Second
		require.NoError(t, f.ask(0, "k").err)
		for i := range 600 {
			r := f.ask(i%2, "k")
			require.NoError(t, r.err)
			require.Zero(t, r.took)
			require.Less(t, r.Age, 5*time.Second, "a new one lands again and again")
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(t, f.runs.Load(), int64(60/4+2))
	})
}

// Case 58: a refresh that never ends does not keep the old value alive.
func TestAHungRefreshKeepsNothingAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := stale.Policy{Fresh: time.Minute, WhileRevalidate: 10 * time.Second}
		f := newFleet(t, 1, cache.Options[string]{Policy: policy, Limit: 30 * time.Second, Wait: 2 * time.Second})
		f.store("k", "old")
		time.Sleep(policy.Fresh)
		release := make(chan struct{})
		values(t, "old", []reply{f.askFor(t.Context(), 0, "k", f.deaf(release))})
		time.Sleep(policy.WhileRevalidate)
		r := f.ask(0, "k")
		require.ErrorIs(t, r.err, recompute.ErrBusy, "past the hard limit it is a miss")
		require.Equal(t, 2*time.Second, r.took)
		time.Sleep(30 * time.Second)
		values(t, "v2", []reply{f.ask(0, "k")})
		close(release)
		synctest.Wait()
		f.stands("k", "v2")
	})
}

// Guarantee 23; case 59: errors neither delete nor shorten the good copy.
func TestAFailedComputationTakesNothingFromTheStaleValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: windows})
		f.store("k", "old")
		put := time.Now()
		f.down.Store(true)
		for time.Since(put) < windows.Retain()-time.Minute {
			time.Sleep(30 * time.Second)
			for i := range f.replicas {
				r := f.ask(i, "k")
				require.NoError(t, r.err)
				require.Equal(t, "old", r.Value)
				require.Equal(t, time.Since(put), r.Age)
				require.Equal(t, time.Since(put) >= windows.Fresh, r.Outcome == cache.Stale)
			}
		}
		assert.Greater(t, f.runs.Load(), int64(10))
		time.Sleep(time.Minute)
		r := f.ask(1, "k")
		require.ErrorIs(t, r.err, errDown, "after the hard limit it is a plain error")
		f.down.Store(false)
		values(t, fmt.Sprint("v", f.runs.Load()+1), []reply{f.ask(0, "k")})
	})
}

// Case 56: what is kept outlives its freshness by the windows, and not longer.
func TestAnEntryIsKeptForAllItsWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var ttl time.Duration
		store := &shim{Memory: m, writes: func(_ cache.Key, w cache.Write) { ttl = w.TTL }}
		policy := stale.Policy{Fresh: time.Second, WhileRevalidate: 3 * time.Second, IfError: 7 * time.Second}
		f := fleetOver(t, m, cache.Options[string]{Policy: policy}, store)
		values(t, "v1", []reply{f.ask(0, "k")})
		assert.Equal(t, 11*time.Second, ttl)
		key := cache.Key{Name: "k", Schema: f.replicas[0].SchemaOf()}
		time.Sleep(11*time.Second - 1)
		_, err := m.Get(t.Context(), key)
		require.NoError(t, err)
		time.Sleep(time.Nanosecond)
		_, err = m.Get(t.Context(), key)
		require.ErrorIs(t, err, cache.ErrNotFound)
	})
}

// Case 61: the caller is gone before the refresh begins to work; it writes all the same.
func TestARefreshOutlivesTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: windows})
		f.store("k", "old")
		time.Sleep(windows.Fresh)
		ctx, cancel := context.WithCancelCause(t.Context())
		r := f.askFor(ctx, 0, "k", f.compute)
		cancel(errors.New("client disconnected"))
		require.Equal(t, windows.Fresh, r.Age)
		time.Sleep(time.Second)
		r = f.ask(0, "k")
		require.Equal(t, cache.Hit, r.Outcome)
		require.Equal(t, time.Second-f.takes, r.Age)
	})
}

// Guarantee 23: in the last window one process computes, the value stays for the others, and for all if that fails.
func TestInTheErrorWindowOneComputesAndTheRestIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, cache.Options[string]{Policy: windows})
		late := windows.Fresh + windows.WhileRevalidate
		f.store("k", "old")
		time.Sleep(late)
		f.down.Store(true)
		values(t, "old", f.crowd(20, "k"))
		assert.EqualValues(t, 1, f.runs.Load())

		f.down.Store(false)
		all := f.crowd(20, "k")
		computed := count(cache.Computed, all)
		assert.Equal(t, 1, computed)
		for _, r := range all {
			require.NoError(t, r.err)
			require.Equal(t, r.Outcome == cache.Stale, r.Value == "old")
			require.Equal(t, r.Outcome != cache.Computed, r.took == 0)
		}
		values(t, "v2", f.crowd(20, "k"))
	})
}
