package recompute_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

func TestWorkLongerThanItsTTLKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(recompute.Local)
		g := guard(t, l, recompute.GuardOptions{TTL: time.Second})
		require.NoError(t, g.Do(t.Context(), "k", func(ctx context.Context, h *recompute.Held) error {
			for range 100 {
				time.Sleep(100 * time.Millisecond)
				require.NoError(t, ctx.Err())
				require.True(t, holdsKey(t, l))
				require.Greater(t, h.Left(), time.Second/2)
				require.LessOrEqual(t, h.Left(), time.Second)
			}
			assert.Equal(t, 30, h.Extensions())
			assert.Equal(t, time.Second, h.TTL())
			return nil
		}))
	})
}

func TestWorkWhoseLeaseIsLostIsToldAndDoSaysSo(t *testing.T) {
	for name, extend := range map[string]func(context.Context) error{
		"to a successor":              func(context.Context) error { return recompute.ErrLost },
		"since extensions fail":       func(context.Context) error { return errNoAnswer },
		"since extensions never come": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := guard(t, &asked{extend: extend}, recompute.GuardOptions{TTL: ttl})
				began := time.Now()
				err := g.Do(t.Context(), "k", func(ctx context.Context, h *recompute.Held) error {
					<-ctx.Done()
					assert.Equal(t, recompute.ErrLost, context.Cause(ctx))
					assert.LessOrEqual(t, time.Since(began), safe, "before it ends")
					assert.Zero(t, h.Left())
					return ctx.Err()
				})
				require.ErrorIs(t, err, recompute.ErrLost)
				require.NotErrorIs(t, err, recompute.ErrNotRun)
				require.ErrorIs(t, err, context.Canceled, "and what the work said")
			})
		})
	}
}

// A lock that vanished does not hide the result of work that was done.
func TestWorkThatFinishedAlthoughItsLeaseWasLostHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost, rejected int
		l := &asked{extend: func(context.Context) error { return recompute.ErrLost }}
		g := guard(t, l, recompute.GuardOptions{TTL: ttl, Trace: recompute.Trace{
			Lost:     func() { lost++ },
			Released: func(err error) { assert.Equal(t, recompute.ErrLost, err); rejected++ },
		}})
		require.NoError(t, g.Do(t.Context(), "k", func(ctx context.Context, h *recompute.Held) error {
			time.Sleep(2 * ttl)
			require.Error(t, ctx.Err())
			require.Zero(t, h.Left())
			return nil
		}))
		assert.Equal(t, 1, lost)
		assert.Equal(t, 1, rejected)
	})
}

func TestARunIsBoundedEvenIfItsWorkHeedsNoContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(recompute.Local)
		g := guard(t, l, recompute.GuardOptions{TTL: time.Second, MaxHold: 10 * time.Second})
		err := g.Do(t.Context(), "k", func(ctx context.Context, h *recompute.Held) error {
			deadline, _ := ctx.Deadline()
			assert.Equal(t, 10*time.Second, time.Until(deadline))
			<-ctx.Done()
			assert.Equal(t, recompute.ErrLimit, context.Cause(ctx))
			time.Sleep(time.Second)
			assert.False(t, holdsKey(t, l), "not extended any more")
			assert.Zero(t, h.Left())
			return ctx.Err()
		})
		require.ErrorIs(t, err, recompute.ErrLimit)
	})
}

func TestTheLeaseLastsWhileWorkWindsDownWhoseCallerHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(recompute.Local)
		g := guard(t, l, recompute.GuardOptions{TTL: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := g.Do(ctx, "k", func(ctx context.Context, h *recompute.Held) error {
			deadline, _ := ctx.Deadline()
			assert.Equal(t, time.Minute, time.Until(deadline))
			<-ctx.Done()
			for range 50 {
				time.Sleep(100 * time.Millisecond)
				require.True(t, holdsKey(t, l))
				require.Positive(t, h.Left())
			}
			return ctx.Err()
		})
		require.Equal(t, context.DeadlineExceeded, err)
		assert.False(t, holdsKey(t, l))
	})
}

func TestALeaseGrantedTooLateIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &asked{acquire: func(_ context.Context, n int) error {
			if n == 1 {
				time.Sleep(800 * time.Millisecond)
			}
			return nil
		}}
		var failed, released int
		g := guard(t, l, recompute.GuardOptions{TTL: time.Second, MinLeft: 200 * time.Millisecond, Trace: recompute.Trace{
			Failed:   func(error) { failed++ },
			Released: func(err error) { assert.NoError(t, err); released++ },
		}})
		require.NoError(t, g.Do(t.Context(), "k", func(_ context.Context, h *recompute.Held) error {
			assert.Equal(t, 950*time.Millisecond, h.Left())
			return nil
		}))
		assert.Equal(t, []int{1, 2}, []int{failed, released})
	})
}

func TestAfterTheWorkNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept *recompute.Held
		g := guard(t, new(recompute.Local), recompute.GuardOptions{TTL: time.Second})
		require.NoError(t, g.Do(t.Context(), "k", func(_ context.Context, h *recompute.Held) error {
			time.Sleep(900 * time.Millisecond)
			kept = h
			return nil
		}))
		assert.Zero(t, kept.Left())
		assert.Equal(t, 2, kept.Extensions(), "and what happened can be seen")
		time.Sleep(time.Hour)
		assert.Equal(t, 2, kept.Extensions())
	})
}

func TestEachGrantHasAHigherFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(recompute.Local)
		g := guard(t, l, recompute.GuardOptions{})
		var fences []int64
		for range 100 {
			require.NoError(t, g.Do(t.Context(), "k", func(_ context.Context, h *recompute.Held) error {
				fence, ok := h.Fence()
				assert.True(t, ok)
				fences = append(fences, fence)
				return nil
			}))
		}
		assert.IsIncreasing(t, fences)
		assert.GreaterOrEqual(t, fences[0], time.Now().UnixMicro(), "above those of a process that was before")
		plain := guard(t, &asked{extend: func(context.Context) error { return nil }}, recompute.GuardOptions{})
		require.NoError(t, plain.Do(t.Context(), "k", func(_ context.Context, h *recompute.Held) error {
			_, ok := h.Fence()
			assert.False(t, ok, "a lease may have none")
			return nil
		}))
	})
}

// A machine that is suspended stops the monotonic clock; the other one can be set. Whichever says less counts.
func TestWhatIsLeftGoesByBothClocks(t *testing.T) {
	now := time.Now()
	until := now.Add(10 * time.Second)
	assert.Equal(t, 10*time.Second, recompute.Left(until, now))
	suspended := monotonicLate(now.Add(time.Minute), time.Minute)
	require.Equal(t, 10*time.Second, until.Sub(suspended), "the monotonic clock has seen nothing")
	assert.Equal(t, -50*time.Second, recompute.Left(until, suspended))
	setBack := monotonicLate(now.Add(-time.Minute), -time.Minute-8*time.Second)
	assert.Equal(t, 2*time.Second, recompute.Left(until, setBack))
}

func TestWhatIsLeftCountsFromBeforeTheExtensionWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &asked{extend: func(context.Context) error { time.Sleep(300 * time.Millisecond); return nil }}
		g := guard(t, l, recompute.GuardOptions{TTL: 1200 * time.Millisecond})
		require.NoError(t, g.Do(t.Context(), "k", func(ctx context.Context, h *recompute.Held) error {
			time.Sleep(750 * time.Millisecond) // extended after 700 ms, as was asked after 400
			assert.Equal(t, 1, h.Extensions())
			assert.Equal(t, 400*time.Millisecond+1140*time.Millisecond-750*time.Millisecond, h.Left())
			return nil
		}))
	})
}

// monotonicLate is a time whose monotonic clock stood still for so long: of the words of a time.Time, the second is that clock.
func monotonicLate(now time.Time, d time.Duration) time.Time {
	(*struct {
		wall uint64
		ext  int64
	})(unsafe.Pointer(&now)).ext -= int64(d)
	return now
}

func TestTheTraceOfAGuardSeesAllThatIsWorthMeasuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []any
		see := func(what ...any) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, what...)
		}
		l := new(recompute.Local)
		first, err := l.Acquire(t.Context(), "k", 5*time.Second)
		require.NoError(t, err)
		g := guard(t, l, recompute.GuardOptions{TTL: 3 * time.Second, Trace: recompute.Trace{
			Acquired: func(took time.Duration) { see("acquired", took) },
			Held:     func() { see("held") },
			Failed:   func(err error) { see("failed", err) },
			Extended: func(err error) { see("extended", err) },
			Lost:     func() { see("lost") },
			Released: func(err error) { see("released", err) },
			Worked:   func(took time.Duration, err error) { see("worked", took, err) },
			Left:     func(left, ttl time.Duration) { see("left", left, ttl) },
		}})
		time.AfterFunc(20*time.Millisecond, func() { assert.NoError(t, first.Release(t.Context())) })
		require.Equal(t, errWork, g.Do(t.Context(), "k", func(context.Context, *recompute.Held) error {
			time.Sleep(1500 * time.Millisecond)
			return errWork
		}))
		assert.Equal(t, []any{
			"held", "held", "acquired", 20 * time.Millisecond, "extended", nil,
			"worked", 1500 * time.Millisecond, errWork, "left", 2350 * time.Millisecond, 3 * time.Second, "released", nil,
		}, seen)
	})
}

func TestWhoLeavesTheQueueWithATokenHandsItOn(t *testing.T) {
	var w recompute.Waiters
	first, leave := w.Wait("k")
	second, stop := w.Wait("k")
	defer stop()
	other, stopOther := w.Wait("other")
	defer stopOther()
	w.Wake("k")
	require.Len(t, first, 1)
	require.Empty(t, second)
	leave()
	assert.Len(t, second, 1)
	assert.Empty(t, other)
	leave()
	w.Wake("nobody")
	w.WakeAll()
	assert.Len(t, other, 1)
}

func TestAWaiterThatNeverTakesItsTokenHoldsUpNobody(t *testing.T) {
	var w recompute.Waiters
	var woken []<-chan struct{}
	for range 3 {
		c, stop := w.Wait("k")
		defer stop()
		woken = append(woken, c)
	}
	w.Wake("k")
	w.Wake("k")
	full := func(c <-chan struct{}) bool { return len(c) == 1 }
	assert.Equal(t, 2, slices.IndexFunc(woken, func(c <-chan struct{}) bool { return !full(c) }))
}
