package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// Guarantee 11; case 18: work outlives its lease, and the late writer does not overwrite the newer value.
func TestALateWriterNeverOverwritesANewerValue(t *testing.T) {
	for says, broken := range map[string]error{"renewals fail": errDown, "the lease is a successor's": recompute.ErrLost} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const lease = 2 * time.Second
				m := cache.NewMemory()
				fail := &locks{Locker: m.Locker(), extend: func(context.Context) error { return broken }}
				f := fleetOver(t, m, cache.Options[string]{Policy: plain, Lease: lease, Locker: fail}, m, m)
				gate := make(chan struct{})
				var ended error
				late := join(f, 0, 3, func(ctx context.Context) (string, error) {
					context.AfterFunc(ctx, func() { ended = context.Cause(ctx) })
					return f.deaf(gate)(ctx)
				})
				time.Sleep(lease - lease/20)
				synctest.Wait()
				assert.ErrorIs(t, ended, recompute.ErrLost, "the work is told before the lease has ended")
				time.Sleep(lease)
				values(t, "v2", []reply{f.ask(1, "k")})
				close(gate)
				all := wait(late...)
				assert.Equal(t, "v1", all[0].Value, "its own caller gets its result")
				assert.Equal(t, cache.Computed, all[0].Outcome)
				for _, r := range all[1:] {
					require.NoError(t, r.err)
					require.Equal(t, "v2", r.Value, "whoever joined it looks again")
				}
				f.stands("k", "v2")
				assert.EqualValues(t, 1, f.overtaken.Load(), "a refused write is counted")
				assert.EqualValues(t, 1, f.lost.Load())
			})
		})
	}
}

// Case 25: releasing a lease that has run out is no trouble.
func TestReleasingALostLeaseIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var released error
		fail := &locks{Locker: m.Locker(), extend: func(context.Context) error { return errDown }}
		o := cache.Options[string]{Policy: plain, Lease: 100 * time.Millisecond, Locker: fail}
		o.Trace.Lease.Released = func(err error) { released = err }
		f := fleetOver(t, m, o, m)
		r := f.askFor(t.Context(), 0, "k", func(context.Context) (string, error) {
			time.Sleep(time.Second)
			return "v", nil
		})
		values(t, "v", []reply{r})
		assert.Equal(t, time.Second, r.took)
		assert.ErrorIs(t, released, recompute.ErrLost)
		f.stands("k", "v")
	})
}

// Case 21: one failed renewal is tried again before the lease ends.
func TestAFailedRenewalIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var tries atomic.Int64
		flaky := &locks{Locker: m.Locker(), extend: func(context.Context) error {
			if tries.Add(1)%2 == 1 {
				return errDown
			}
			return nil
		}}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain, Locker: flaky}, m, m)
		f.takes = 20 * time.Second
		values(t, "v1", f.crowd(5, "k"))
		assert.EqualValues(t, 1, f.runs.Load())
		assert.Zero(t, f.lost.Load())
	})
}

// Case 26: two hold the lease. Both finish, in either order.
func TestTwoHoldersDoNoHarm(t *testing.T) {
	for _, firstToEnd := range []int{0, 1} {
		t.Run(fmt.Sprint("the one that ends first: ", firstToEnd), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := cache.NewMemory()
				f := fleetOver(t, m, cache.Options[string]{Policy: plain, Locker: generous{}}, m, m)
				gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
				earlier := join(f, 0, 1, f.gated(gates[0]))[0]
				later := join(f, 1, 1, f.gated(gates[1]))[0]
				guests := []*guest{earlier, later}
				close(gates[firstToEnd])
				first := wait(guests[firstToEnd])[0]
				close(gates[1-firstToEnd])
				second := wait(guests[1-firstToEnd])[0]
				for _, r := range []reply{first, second} {
					require.NoError(t, r.err)
				}
				assert.EqualValues(t, 2, f.runs.Load())
				f.stands("k", "v2") // the one that began later
			})
		})
	}
}

// Case 27: all memory is gone, leases too, while it computes.
func TestAStoreThatForgetsEverythingIsNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, store)
		f.store("k", "old")
		time.Sleep(plain.Fresh)
		gate := make(chan struct{})
		g := join(f, 0, 1, f.gated(gate))[0]
		store.Memory = cache.NewMemory()
		close(gate)
		values(t, "v1", []reply{wait(g)[0]})
		f.stands("k", "") // what began before could have been deleted
		values(t, "v2", []reply{f.ask(0, "k")})
		f.stands("k", "v2")
		f.store("k", "set")
		f.stands("k", "set")
	})
}

// Case 66, last part: the negative answer of an older computation.
func TestALaterValueIsNotDisplacedByAnOlderNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		policy := plain
		policy.Negative = time.Minute
		f := fleetOver(t, m, cache.Options[string]{Policy: policy, Locker: generous{}}, m, m)
		gate := make(chan struct{})
		older := join(f, 0, 1, func(context.Context) (string, error) { <-gate; return "", cache.ErrNotFound })
		values(t, "v1", []reply{f.ask(1, "k")})
		close(gate)
		assert.ErrorIs(t, wait(older...)[0].err, cache.ErrNotFound)
		f.stands("k", "v1")
	})
}

func TestFencesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, m, m)
		var fences []cache.Fence
		for i := range 10 {
			_, err := f.replicas[i%2].GetOrCompute(t.Context(), "k", func(ctx context.Context) (string, error) {
				fences = append(fences, cache.FenceOf(ctx))
				return "v", nil
			})
			f.calls.Add(1)
			require.NoError(t, err)
			require.NoError(t, f.replicas[1].Delete(t.Context(), "k"))
		}
		assert.Positive(t, fences[0])
		assert.True(t, slices.IsSorted(fences))
		assert.Len(t, slices.Compact(fences), 10)
		assert.Zero(t, cache.FenceOf(t.Context()), "outside of a computation")
	})
}

func TestThereIsNoFenceWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m, before: func(_ context.Context, step string) error {
			if step == "begin" {
				return errDown
			}
			return nil
		}}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, store)
		r := f.askFor(t.Context(), 0, "k", func(ctx context.Context) (string, error) {
			return fmt.Sprint(cache.FenceOf(ctx)), nil
		})
		values(t, "0", []reply{r})
		f.stands("k", "") // and nothing is written without one
	})
}

// Case 27: gaps in the numbers are harmless.
func TestNumbersMayHaveGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, m)
		key := cache.Key{Name: "k", Schema: f.replicas[0].SchemaOf()}
		for i := range 5 {
			for range i * 100 {
				_, _, err := m.Begin(t.Context(), key, 0, time.Minute)
				require.NoError(t, err)
			}
			values(t, fmt.Sprint("v", i+1), []reply{f.ask(0, "k")})
			f.stands("k", fmt.Sprint("v", i+1))
			time.Sleep(plain.Fresh)
		}
	})
}

// A reply to a write may be lost: the value is there, and its callers have it.
func TestALostReplyToTheWriteIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m, after: func(_ context.Context, step string) error {
			if step == "set" {
				return errors.New("connection reset")
			}
			return nil
		}}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, store, store)
		var all sync.WaitGroup
		for _, r := range f.crowd(10, "k") {
			values(t, "v1", []reply{r})
		}
		all.Wait()
		values(t, "v1", f.crowd(10, "k"))
		assert.EqualValues(t, 1, f.runs.Load())
		assert.EqualValues(t, 1, f.storeFailed.Load())
	})
}
