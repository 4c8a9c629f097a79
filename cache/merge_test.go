package cache_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// Guarantee 1.
func TestCallersOfOneProcessShareOneComputation(t *testing.T) {
	for _, k := range []int{10, 100, 1000} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 1, cache.Options[string]{Policy: plain})
				gate := make(chan struct{})
				replies := f.crowdFor(k, "k", f.gated(gate))
				synctest.Wait() // all of them wait
				require.EqualValues(t, 1, f.now.Load())
				close(gate)
				all := replies()
				values(t, "v1", all)
				assert.EqualValues(t, 1, f.runs.Load())
				assert.Equal(t, 1, count(cache.Computed, all))
				assert.Equal(t, k-1, count(cache.Collapsed, all))
			})
		})
	}
}

// Guarantee 2; cases 13 and 65.
func TestAFleetComputesOncePerLifetime(t *testing.T) {
	type state struct {
		says    string
		prepare func(f *fleet, spoil func(func(cache.Entry) cache.Entry))
	}
	states := []state{
		{"cold", func(*fleet, func(func(cache.Entry) cache.Entry)) {}},
		{"at expiry", func(f *fleet, _ func(func(cache.Entry) cache.Entry)) {
			f.store("k", "old")
			time.Sleep(plain.Fresh)
		}},
		{"past the hard limit", func(f *fleet, spoil func(func(cache.Entry) cache.Entry)) {
			f.store("k", "old")
			spoil(func(e cache.Entry) cache.Entry { e.Age += 10 * plain.Fresh; return e })
		}},
		{"over a corrupt entry", func(f *fleet, spoil func(func(cache.Entry) cache.Entry)) {
			f.store("k", "old")
			spoil(func(e cache.Entry) cache.Entry { e.Data = e.Data[:len(e.Data)-1]; return e })
		}},
	}
	for _, s := range states {
		for _, size := range [][2]int{{2, 100}, {10, 100}} {
			for _, takes := range []time.Duration{0, 300 * time.Millisecond, 25 * time.Second} { // the lease is 2 s
				t.Run(fmt.Sprint(s.says, size, takes), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						m := cache.NewMemory()
						store := &shim{Memory: m}
						f := fleetOver(t, m, cache.Options[string]{Policy: plain}, fill(size[0], cache.Store(store))...)
						f.takes = takes
						s.prepare(f, spoiler(f, store))
						all := f.crowd(size[1], "k")
						values(t, "v1", all)
						assert.EqualValues(t, 1, f.runs.Load())
						assert.Equal(t, 1, count(cache.Computed, all))
						time.Sleep(plain.Fresh - time.Second)
						values(t, "v1", f.crowd(size[1], "k"))
						assert.EqualValues(t, 1, f.runs.Load(), "a lifetime lasts")
						time.Sleep(time.Second)
						values(t, "v2", f.crowd(size[1], "k"))
						assert.EqualValues(t, 2, f.runs.Load(), "and ends")
					})
				})
			}
		}
	}
}

func fill[T any](n int, v T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// spoiler makes the store falsify the entries that it has now.
func spoiler(f *fleet, s *shim) func(func(cache.Entry) cache.Entry) {
	return func(change func(cache.Entry) cache.Entry) {
		e, err := s.Memory.Get(f.t.Context(), cache.Key{Name: "k", Schema: f.replicas[0].SchemaOf()})
		require.NoError(f.t, err)
		s.found = func(found cache.Entry) cache.Entry {
			if found.Fence > e.Fence {
				return found
			}
			return change(found)
		}
	}
}

// Case 13 says: repeat.
func TestTwoReplicasComputeOnceEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		for i := range 50 {
			values(t, fmt.Sprint("v", i+1), f.crowd(100, fmt.Sprint("k", i)))
		}
		assert.EqualValues(t, 50, f.runs.Load())
		assert.EqualValues(t, 1, f.most.Load())
	})
}

// Guarantee 2, second half: the lease can't be kept, so others take over, once per lease.
func TestWithFailingRenewalsAFleetComputesOncePerLease(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const lease = 2 * time.Second
				m := cache.NewMemory()
				o := cache.Options[string]{Policy: plain, Lease: lease, Locker: &locks{
					Locker: m.Locker(),
					extend: func(context.Context) error { return errDown },
				}}
				f := fleetOver(t, m, o, fill(10, cache.Store(m))...)
				deaf := func(context.Context) (string, error) { // goes on, whatever becomes of its lease
					defer f.now.Add(-1)
					n := f.enter()
					time.Sleep(takes)
					return fmt.Sprint("v", n), nil
				}
				for _, r := range f.crowdFor(20, "k", deaf)() {
					require.NoError(t, r.err)
					require.NotEmpty(t, r.Value)
				}
				assert.LessOrEqual(t, f.runs.Load(), 1+int64(takes/lease))
			})
		})
	}
}

// A computation that heeds its context gives up with its lease. Once: if nobody has the lease then, it is the locker
// that can't keep any, and the value is what matters. That costs each holder one more computation.
func TestWithFailingRenewalsAComputationThatHeedsItsContextStillEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = time.Second
		m := cache.NewMemory()
		o := cache.Options[string]{Policy: plain, Lease: lease, Locker: &locks{
			Locker: m.Locker(),
			extend: func(context.Context) error { return errDown },
		}}
		f := fleetOver(t, m, o, fill(10, cache.Store(m))...)
		f.takes = 3500 * time.Millisecond
		for _, r := range f.crowd(20, "k") {
			require.NoError(t, r.err)
			require.NotEmpty(t, r.Value)
			require.LessOrEqual(t, r.took, 2*(lease+f.takes), "until the first is done, or a takeover just before that")
		}
		assert.LessOrEqual(t, f.runs.Load(), int64(2*(1+(lease+f.takes)/lease)))
	})
}

// The same for a locker so slow that its leases are over when they are granted.
func TestALockerThatIsTooSlowIsNoReasonToFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		slow := &locks{Locker: m.Locker(), acquire: func(context.Context) error { time.Sleep(50 * time.Millisecond); return nil }}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain, Lease: 50 * time.Millisecond, Locker: slow}, m)
		r := f.ask(0, "k")
		require.NoError(t, r.err)
		require.Less(t, r.took, time.Second)
	})
}

// The other side of guarantee 2: without anything shared, each process still merges its own.
func TestWithABrokenLockerEachProcessComputesForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		broken := &locks{Locker: new(recompute.Local), acquire: func(context.Context) error { return errDown }}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain, Locker: broken}, fill(5, cache.Store(m))...)
		for _, r := range f.crowd(100, "k") {
			require.NoError(t, r.err)
			require.NotEmpty(t, r.Value)
		}
		assert.LessOrEqual(t, f.runs.Load(), int64(5))
	})
}

func TestWithABrokenStoreEachProcessComputesForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m, before: func(context.Context, string) error { return errDown }}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, fill(5, cache.Store(store))...)
		for _, r := range f.crowd(100, "k") {
			require.NoError(t, r.err, "the store's trouble is not the caller's")
			require.NotEmpty(t, r.Value)
		}
		assert.LessOrEqual(t, f.runs.Load(), int64(5))
		assert.Positive(t, f.storeFailed.Load())
	})
}

// Guarantee 5. 500 ms is no multiple of a pause.
func TestTheLastWaiterHasTheValueWithItsPublication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10, cache.Options[string]{Policy: plain})
		f.takes = 500 * time.Millisecond
		for _, r := range f.crowd(100, "k") {
			require.NoError(t, r.err)
			require.Equal(t, 500*time.Millisecond, r.took)
		}
	})
}

func TestWithoutEventsWaitersLookAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, fill(10, cache.Store(newQuiet(m)))...)
		f.takes = 500 * time.Millisecond
		all := f.crowd(100, "k")
		values(t, "v1", all)
		for _, r := range all {
			require.Less(t, r.took, 1500*time.Millisecond, "no chain of them")
		}
		assert.EqualValues(t, 1, f.runs.Load())
	})
}
