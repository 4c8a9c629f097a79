package recompute_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

const (
	ttl  = 1200 * time.Millisecond
	safe = ttl - ttl/20 // how long a holder relies on it
)

var errNoAnswer = errors.New("no answer")

// held is a lease that is held, and what it is asked.
type held struct {
	answer func(ctx context.Context, n int) error // to the nth extension, from 1

	mu       sync.Mutex
	began    time.Time
	asked    []time.Duration // when it was to be extended
	extended []error         // what the trace was told
	lost     int
}

func (h *held) Extend(ctx context.Context, d time.Duration) error {
	if d != ttl {
		return errors.New("another ttl")
	}
	h.mu.Lock()
	h.asked = append(h.asked, time.Since(h.began))
	n := len(h.asked)
	h.mu.Unlock()
	return h.answer(ctx, n)
}

// told is what there was until now.
type told struct {
	asked    []time.Duration
	extended []error
	lost     int
}

// told waits until all is quiet.
func (h *held) told() told {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return told{slices.Clone(h.asked), slices.Clone(h.extended), h.lost}
}

func (h *held) Release(context.Context) error { return nil }

func (h *held) trace() recompute.Trace {
	return recompute.Trace{
		Extended: func(err error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.extended = append(h.extended, err)
		},
		Lost: func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.lost++
		},
	}
}

// hold runs test in a bubble, on the context of work under a lease that was asked for age ago.
func hold(t *testing.T, answer func(ctx context.Context, n int) error, age time.Duration, test func(t *testing.T, h *held, work context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		h := &held{answer: answer, began: time.Now()}
		work, stop := recompute.Hold(t.Context(), tasks, h, time.Now().Add(-age), ttl, h.trace())
		test(t, h, work)
		stop()
		n := len(h.told().asked)
		require.NoError(t, tasks.Close(0), "goroutines left")
		time.Sleep(10 * ttl)
		assert.Len(t, h.told().asked, n, "nothing is extended after stop")
	})
}

func ms(times ...int) (d []time.Duration) {
	for _, t := range times {
		d = append(d, time.Duration(t)*time.Millisecond)
	}
	return d
}

// endsAt asserts that the work's context ends after d because the lease is lost, and not before.
func endsAt(t *testing.T, h *held, work context.Context, d time.Duration) {
	t.Helper()
	<-work.Done()
	assert.Equal(t, d, time.Since(h.began))
	assert.Equal(t, recompute.ErrLost, context.Cause(work))
	assert.Equal(t, 1, h.told().lost, "calls of Trace.Lost")
}

func granted(context.Context, int) error { return nil }

func TestALeaseIsExtendedEachThirdOfItsTTL(t *testing.T) {
	hold(t, granted, 0, func(t *testing.T, h *held, work context.Context) {
		time.Sleep(2*ttl + time.Millisecond)
		require.NoError(t, work.Err())
		assert.Equal(t, ms(400, 800, 1200, 1600, 2000, 2400), h.told().asked)
		assert.Equal(t, make([]error, 6), h.told().extended)
		assert.Zero(t, h.told().lost)
	})
}

func TestTheValidityOfALeaseCountsFromBeforeItWasAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		age   time.Duration
		asked []time.Duration
		ends  time.Duration
	}{
		"a slow acquire":              {200 * time.Millisecond, ms(200, 300, 400, 500, 600, 700, 800, 900), safe - 200*time.Millisecond},
		"slower than a third":         {1000 * time.Millisecond, ms(0, 100), safe - 1000*time.Millisecond},
		"slower than the whole lease": {2 * ttl, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			hold(t, func(context.Context, int) error { return errNoAnswer }, c.age, func(t *testing.T, h *held, work context.Context) {
				endsAt(t, h, work, c.ends)
				if c.ends > 0 {
					assert.Equal(t, c.asked, h.told().asked)
				}
			})
		})
	}
}

func TestTheWorkEndsBeforeTheLeaseDoes(t *testing.T) {
	for name, answer := range map[string]func(ctx context.Context, n int) error{
		"when extensions fail":             func(context.Context, int) error { return errNoAnswer },
		"when they get no answer":          func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() },
		"when they heed no context":        func(context.Context, int) error { time.Sleep(time.Hour); return nil },
		"when they succeed too late":       func(context.Context, int) error { time.Sleep(ttl); return nil },
		"when they are refused at the end": func(context.Context, int) error { time.Sleep(safe - ttl/3); return recompute.ErrLost },
	} {
		t.Run(name, func(t *testing.T) {
			hold(t, answer, 0, func(t *testing.T, h *held, work context.Context) {
				endsAt(t, h, work, safe)
				time.Sleep(time.Hour)
				assert.Equal(t, 1, h.told().lost)
				assert.NotContains(t, h.told().extended, nil, "what comes after the end is of no use")
			})
		})
	}
}

func TestALostLeaseEndsTheWorkAtOnce(t *testing.T) {
	lost := func(_ context.Context, n int) error { return []error{nil, recompute.ErrLost}[min(n, 2)-1] }
	hold(t, lost, 0, func(t *testing.T, h *held, work context.Context) {
		endsAt(t, h, work, 800*time.Millisecond)
		assert.Equal(t, []error{nil, recompute.ErrLost}, h.told().extended)
	})
}

func TestTheLossIsToldOnceHoweverItIsNoticed(t *testing.T) {
	for range 1000 {
		hold(t, func(context.Context, int) error { time.Sleep(safe - ttl/3); return recompute.ErrLost }, 0,
			func(t *testing.T, h *held, work context.Context) { endsAt(t, h, work, safe) })
	}
}

func TestALostLeaseEndsTheWorkWhateverTheHookDoes(t *testing.T) {
	for name, lost := range map[string]func(){"panics": func() { panic("a hook") }, "leaves": runtime.Goexit} {
		for how, answer := range map[string]error{"an extension finds out": recompute.ErrLost, "its time is over": errNoAnswer} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := &held{answer: func(context.Context, int) error { return answer }, began: time.Now()}
					work, stop := recompute.Hold(t.Context(), nil, h, time.Now(), ttl, recompute.Trace{Lost: lost})
					defer stop()
					time.Sleep(ttl)
					assert.Equal(t, recompute.ErrLost, context.Cause(work))
				})
			})
		}
	}
}

func TestAFailedExtensionIsTriedAgainBeforeTheLeaseEnds(t *testing.T) {
	failing := func(_ context.Context, n int) error {
		if n%7 != 0 { // six in a row
			return errNoAnswer
		}
		return nil
	}
	hold(t, failing, 0, func(t *testing.T, h *held, work context.Context) {
		time.Sleep(1999 * time.Millisecond)
		require.NoError(t, work.Err())
		assert.Equal(t, ms(400, 500, 600, 700, 800, 900, 1000, 1400, 1500, 1600, 1700, 1800, 1900), h.told().asked)
		assert.Equal(t, errNoAnswer, h.told().extended[0])
		assert.NoError(t, h.told().extended[6])
		time.Sleep(10 * ttl)
		require.NoError(t, work.Err())
	})
}

func TestAnExtensionCountsFromWhenItWasAskedFor(t *testing.T) {
	slow := func(_ context.Context, n int) error {
		time.Sleep(300 * time.Millisecond)
		if n > 2 {
			return errNoAnswer
		}
		return nil
	}
	hold(t, slow, 0, func(t *testing.T, h *held, work context.Context) {
		endsAt(t, h, work, 800*time.Millisecond+safe)
		assert.Equal(t, ms(400, 800, 1200, 1600), h.told().asked)
	})
}

func TestStopEndsTheWorkWithoutALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &held{answer: granted, began: time.Now()}
		work, stop := recompute.Hold(t.Context(), nil, h, time.Now(), ttl, h.trace()) // uncounted
		time.Sleep(ttl - time.Millisecond)
		stop()
		stop()
		assert.Equal(t, context.Canceled, context.Cause(work))
		time.Sleep(10 * ttl)
		assert.Zero(t, h.told().lost)
		assert.Len(t, h.told().asked, 2)
	})
}

func TestExtensionsEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		h := &held{answer: granted, began: time.Now()}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*ttl+ttl/2, recompute.ErrLimit)
		defer cancel()
		work, stop := recompute.Hold(ctx, tasks, h, time.Now(), ttl, h.trace())
		defer stop()
		time.Sleep(10 * ttl)
		assert.Equal(t, recompute.ErrLimit, context.Cause(work))
		assert.Equal(t, ms(400, 800, 1200, 1600, 2000, 2400, 2800), h.told().asked)
		assert.Zero(t, h.told().lost)
		require.NoError(t, tasks.Close(0))
	})
}

func TestWorkEndsWhenNobodyCanKeepItsLeaseAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		require.NoError(t, tasks.Close(0))
		h := &held{answer: granted, began: time.Now()}
		work, stop := recompute.Hold(t.Context(), tasks, h, time.Now(), ttl, recompute.Trace{})
		defer stop()
		<-work.Done()
		assert.Equal(t, recompute.ErrClosed, context.Cause(work))
		assert.Equal(t, ttl/3, time.Since(h.began))
		assert.Empty(t, h.told().asked)
	})
}

func TestHoldingALeaseTakesNoGoroutineUntilItIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &held{answer: granted, began: time.Now()}
		before := runtime.NumGoroutine()
		for range 100 {
			_, stop := recompute.Hold(t.Context(), nil, h, time.Now(), ttl, h.trace())
			defer stop()
		}
		assert.Less(t, runtime.NumGoroutine()-before, 50) // other tests have goroutines, too
		time.Sleep(ttl/3 + time.Millisecond)
		assert.Len(t, h.told().asked, 100)
	})
}

func TestTheHooksOfATraceMayBeLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &held{answer: func(context.Context, int) error { return errNoAnswer }, began: time.Now()}
		work, stop := recompute.Hold(t.Context(), nil, h, time.Now(), ttl, recompute.Trace{})
		defer stop()
		<-work.Done()
		assert.Equal(t, safe, time.Since(h.began))
	})
}
