package cache_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// forgetful is a store whose announcements get lost on the way if the test says so.
type forgetful struct {
	*shim
	lost func(cache.Event) bool
}

func (s forgetful) Watch(ctx context.Context, tell func(cache.Event)) {
	s.Memory.Watch(ctx, func(e cache.Event) {
		if !s.lost(e) {
			tell(e)
		}
	})
}

// Case 33: an announcement is lost.
func TestALostAnnouncementDelaysButDoesNotHang(t *testing.T) {
	for says, lost := range map[string]func(cache.Event) bool{
		"of the value":      func(e cache.Event) bool { return e.Kind == cache.Published },
		"of the release":    func(e cache.Event) bool { return e.Kind == cache.Released },
		"of both":           func(e cache.Event) bool { return e.Kind == cache.Published || e.Kind == cache.Released },
		"of everything":     func(e cache.Event) bool { return e.Kind != cache.Connected },
		"of the connection": func(cache.Event) bool { return true },
	} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const lease = 2 * time.Second
				m := cache.NewMemory()
				store := forgetful{&shim{Memory: m}, lost}
				f := fleetOver(t, m, cache.Options[string]{Policy: plain, Lease: lease}, fill(4, cache.Store(store))...)
				all := f.crowd(25, "k")
				values(t, "v1", all)
				for _, r := range all {
					require.LessOrEqual(t, r.took, f.takes+lease+lease/4)
				}
				assert.EqualValues(t, 1, f.runs.Load())
			})
		})
	}
}

// What an announcement brings is as old as the announcement, not as its reading.
func TestAnAnnouncedValueThatWasDeletedMeanwhileIsNotServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var slow atomic.Bool
		deaf := forgetful{&shim{Memory: m}, func(e cache.Event) bool { return e.Kind == cache.Deleted }}
		o := cache.Options[string]{Policy: plain, Locker: &locks{Locker: m.Locker(), acquire: func(ctx context.Context) error {
			if ctx.Value(slowly{}) == nil || !slow.CompareAndSwap(true, false) {
				return nil
			}
			time.Sleep(3 * time.Second)
			return recompute.ErrHeld
		}}}
		f := fleetOver(t, m, o, m, deaf)
		slow.Store(true)
		go f.askFor(context.WithValue(t.Context(), slowly{}, true), 1, "k", f.compute)
		synctest.Wait() // the flight has asked for the lease, and gets no reply yet
		time.Sleep(time.Second)
		values(t, "v1", []reply{f.ask(0, "k")}) // which replica 1 hears of
		require.NoError(t, f.replicas[0].Delete(t.Context(), "k"))
		time.Sleep(time.Second)
		r := f.ask(1, "k")
		values(t, "v2", []reply{r})
	})
}

// Guarantee 6 without a cooldown: those who wait elsewhere hear of the failure, and do not compute one after the other.
func TestAFailureIsSharedByThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, cache.Options[string]{Policy: plain})
		f.down.Store(true)
		for _, r := range f.crowd(25, "k") {
			require.ErrorContains(t, r.err, errDown.Error())
			require.Equal(t, f.takes, r.took)
		}
		assert.EqualValues(t, 1, f.runs.Load())
		f.down.Store(false)
		values(t, "v2", f.crowd(25, "k"))
	})
}

func TestTheTraceTellsWhetherEventsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on []bool
		o := cache.Options[string]{Policy: plain}
		o.Trace.Push = func(yes bool, err error) { on = append(on, yes); assert.NoError(t, err) }
		newFleet(t, 1, o)
		synctest.Wait()
		assert.Equal(t, []bool{true}, on)
	})
}

// While events don't arrive, waiting polls; when they arrive again, everybody looks at once.
func TestWaitersFollowTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var tell func(cache.Event)
		store := &told{Memory: m, with: func(f func(cache.Event)) { tell = f }}
		counting := &locks{Locker: m.Locker()}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain, Lease: 10 * time.Second, Locker: counting, Wait: time.Minute}, store)
		synctest.Wait()
		held, err := m.Locker().Acquire(t.Context(), "k", time.Minute)
		require.NoError(t, err)
		g := join(f, 0, 1, f.compute)

		asked := func(d time.Duration) int64 {
			before := counting.acquired.Load()
			time.Sleep(d)
			synctest.Wait()
			return counting.acquired.Load() - before
		}
		assert.Greater(t, asked(5*time.Second), int64(5), "it polls")
		tell(cache.Event{Kind: cache.Connected})
		synctest.Wait()
		assert.LessOrEqual(t, asked(9*time.Second), int64(1), "it listens")
		tell(cache.Event{Kind: cache.Disconnected, Err: errDown})
		synctest.Wait()
		assert.Greater(t, asked(5*time.Second), int64(5), "it polls again")
		require.NoError(t, held.Release(t.Context()))
		values(t, "v1", wait(g...))
	})
}

// told is a Memory whose events the test makes up.
type told struct {
	*cache.Memory
	with func(func(cache.Event))
}

func (s *told) Watch(ctx context.Context, tell func(cache.Event)) {
	s.with(tell)
	<-ctx.Done()
}
