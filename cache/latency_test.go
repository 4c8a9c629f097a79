package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// trouble is what keeps a computation from ending.
type trouble struct {
	says    string
	compute bool   // it blocks, whatever its context says
	step    string // of the store that hangs
	acquire bool   // the locker hangs
	held    bool   // a stranger holds the lease
}

var troubles = []trouble{
	{says: "compute blocks", compute: true},
	{says: "a stranger holds the lease", held: true},
	{says: "begin hangs", step: "begin"},
	{says: "set hangs", step: "set"},
	{says: "the locker hangs", acquire: true},
	{says: "get hangs", step: "get"},
	{says: "compute blocks and a stranger holds the lease", compute: true, held: true},
	{says: "compute blocks and set hangs", compute: true, step: "set"},
}

// besiege returns a fleet of two in that trouble, and the end of it.
func (tr trouble) besiege(t *testing.T, o cache.Options[string]) (f *fleet, compute cache.Compute[string], start func()) {
	over := make(chan struct{})
	t.Cleanup(func() { close(over); synctest.Wait() })
	m := cache.NewMemory()
	on := false
	hang := func(yes bool) error {
		if yes && on {
			<-over
		}
		return nil
	}
	store := &shim{Memory: m, before: func(_ context.Context, step string) error { return hang(step == tr.step) }}
	o.Locker = &locks{Locker: m.Locker(), acquire: func(context.Context) error { return hang(tr.acquire) }}
	f = &fleet{t: t, memory: m, strangers: true}
	f.count(&o.Trace)
	for range 2 {
		c, err := cache.New[string](store, o)
		require.NoError(t, err)
		f.replicas = append(f.replicas, c)
	}
	t.Cleanup(func() { // before the siege is over: closing takes its bounded time
		for _, c := range f.replicas {
			began := time.Now()
			_ = c.Close()
			assert.LessOrEqual(t, time.Since(began), 5*time.Second)
		}
	})
	compute = func(ctx context.Context) (string, error) {
		f.enter()
		if tr.compute {
			<-over
		}
		return "new", ctx.Err()
	}
	start = func() {
		on = true
		if tr.held {
			_, err := m.Locker().Acquire(t.Context(), "k", time.Hour)
			require.NoError(t, err)
		}
	}
	return f, compute, start
}

// wave has callers ask at intervals, every second one with a deadline of its own.
func wave(f *fleet, compute cache.Compute[string], own time.Duration) []reply {
	replies := make([]reply, 40)
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() {
			ctx := f.t.Context()
			if i%2 == 1 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, own)
				defer cancel()
			}
			replies[i] = f.askFor(ctx, i/2%2, "k", compute)
		})
		time.Sleep(10 * time.Millisecond)
	}
	all.Wait()
	return replies
}

const (
	patience = time.Second // Options.Wait
	own      = 300 * time.Millisecond
)

// Guarantee 3.
func TestWithAStaleValueEveryCallerIsServedAtOnce(t *testing.T) {
	for _, tr := range troubles {
		if tr.step == "get" {
			continue // then there is no stale value in hand
		}
		for _, late := range []time.Duration{windows.Fresh, windows.Fresh + windows.WhileRevalidate} {
			t.Run(fmt.Sprint(tr.says, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, compute, start := tr.besiege(t, cache.Options[string]{Policy: windows, Wait: patience})
					f.store("k", "old")
					time.Sleep(late)
					start()
					var leaders int
					for i, r := range wave(f, compute, own) {
						require.NoError(t, r.err)
						if r.took == 0 && r.Outcome == cache.Computed { // nothing hindered this one
							require.Equal(t, "new", r.Value)
							continue
						}
						if r.took > 0 {
							leaders++
							require.LessOrEqual(t, r.took, map[bool]time.Duration{true: own, false: patience}[i%2 == 1])
						}
						require.Contains(t, []string{"old", "new"}, r.Value)
						require.Contains(t, []cache.Outcome{cache.Stale, cache.Hit, cache.Collapsed}, r.Outcome)
						require.Equal(t, r.Value == "old", r.Outcome == cache.Stale, "a stale value is flagged")
					}
					if late == windows.Fresh {
						assert.Zero(t, leaders, "while revalidating nobody waits")
					}
					assert.LessOrEqual(t, leaders, 2, "in trouble only those whose computation it is, one in each process")
				})
			})
		}
	}
}

// Guarantee 4.
func TestWithNothingToServeNobodyWaitsLongerThanTold(t *testing.T) {
	for _, tr := range troubles {
		t.Run(tr.says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, compute, start := tr.besiege(t, cache.Options[string]{Policy: plain, Wait: patience})
				start()
				for i, r := range wave(f, compute, own) {
					want, most := recompute.ErrBusy, patience
					if i%2 == 1 {
						want, most = context.DeadlineExceeded, own
					}
					require.ErrorIs(t, r.err, want)
					require.Equal(t, most, r.took)
					require.Zero(t, r.Result, "an error comes with no value")
				}
			})
		})
	}
}

// Guarantee 4 for those who cancel; case 6.
func TestACancelledCallerReturnsAtOnce(t *testing.T) {
	for _, tr := range troubles {
		t.Run(tr.says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, compute, start := tr.besiege(t, cache.Options[string]{Policy: plain, Wait: patience})
				start()
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(20*time.Millisecond, cancel)
				r := f.askFor(ctx, 0, "k", compute)
				require.ErrorIs(t, r.err, context.Canceled)
				require.Equal(t, 20*time.Millisecond, r.took)
			})
		})
	}
}

// Guarantee 21; case 30.
func TestWhenWaitsRunOutNobodyComputesBehind(t *testing.T) {
	for _, state := range []string{"nothing", "stale"} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 5, cache.Options[string]{Policy: windows, Wait: patience})
				f.takes = 20 * time.Second
				if state == "stale" {
					f.store("k", "old")
					time.Sleep(windows.Fresh + windows.WhileRevalidate)
				}
				for range 10 { // wave after wave
					for _, r := range f.crowd(100, "k") {
						if state == "stale" {
							require.NoError(t, r.err)
							require.Equal(t, cache.Stale, r.Outcome)
							continue
						}
						require.ErrorIs(t, r.err, recompute.ErrBusy)
						require.LessOrEqual(t, r.took, patience)
					}
				}
				assert.EqualValues(t, 1, f.runs.Load())
				time.Sleep(20 * time.Second)
				values(t, "v1", f.crowd(100, "k")) // what they waited for has come
				assert.EqualValues(t, 1, f.runs.Load())
			})
		})
	}
}

// Case 30: the winner hangs; the rest waits out its lease, one takes over.
func TestWaitersOfADeadHolderTakeOverOnceAndTogether(t *testing.T) {
	for _, deaf := range []bool{false, true} { // to events
		t.Run(fmt.Sprint("without events ", deaf), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const lease = 2 * time.Second
				m := cache.NewMemory()
				store := cache.Store(m)
				if deaf {
					store = newQuiet(m)
				}
				counting := &locks{Locker: m.Locker()}
				f := fleetOver(t, m, cache.Options[string]{Policy: plain, Lease: lease, Locker: counting}, fill(5, store)...)
				_, err := m.Locker().Acquire(t.Context(), "k", lease) // and dies
				require.NoError(t, err)
				all := f.crowd(100, "k")
				values(t, "v1", all)
				assert.EqualValues(t, 1, f.runs.Load())
				slowest := slices.MaxFunc(all, func(a, b reply) int { return int(a.took - b.took) })
				assert.LessOrEqual(t, slowest.took, lease+lease/4+750*time.Millisecond+f.takes)
				assert.Less(t, counting.acquired.Load(), int64(150), "polls are bounded")
			})
		})
	}
}

// Cases 29 and 31: whoever waits for a winner that comes to nothing contends again, or gets the typed error.
func TestALoserNeverTurnsNothingIntoAZeroValue(t *testing.T) {
	outcomes := map[string]cache.Compute[string]{
		"fails":   func(ctx context.Context) (string, error) { _ = pause(ctx, time.Second); return "", errDown },
		"panics":  func(ctx context.Context) (string, error) { _ = pause(ctx, time.Second); panic("at the disco") },
		"refused": func(ctx context.Context) (string, error) { _ = pause(ctx, time.Second); return "old", nil },
	}
	for says, winner := range outcomes {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 2, cache.Options[string]{Policy: plain})
				var first reply
				var both sync.WaitGroup
				both.Go(func() { first = f.askFor(t.Context(), 0, "k", winner) })
				synctest.Wait()
				second := f.crowdFor(10, "k", f.compute)
				if says == "refused" {
					both.Go(func() {
						time.Sleep(time.Second / 2)
						assert.NoError(t, f.replicas[1].Delete(t.Context(), "k"))
					})
				}
				for _, r := range second() {
					var failed *cache.FailedError
					var panicked *recompute.PanicError
					if r.err != nil {
						require.True(t, errors.Is(r.err, errDown) || errors.As(r.err, &failed) || errors.As(r.err, &panicked), r.err)
						continue
					}
					require.Contains(t, []string{"v1", "old"}, r.Value)
				}
				both.Wait()
				require.True(t, first.err != nil || first.Value == "old")
			})
		})
	}
}
