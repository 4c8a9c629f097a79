package recompute_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

// asked is a locker whose answers can be changed.
type asked struct {
	recompute.Local
	acquire func(ctx context.Context, n int) error // before the nth question, from 1; an error is the answer
	extend  func(ctx context.Context) error        // as well

	mu sync.Mutex
	at []time.Time // when it was asked
}

func (a *asked) Acquire(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	a.mu.Lock()
	a.at = append(a.at, time.Now())
	n := len(a.at)
	a.mu.Unlock()
	if a.acquire != nil {
		if err := a.acquire(ctx, n); err != nil {
			return nil, err
		}
	}
	lease, err := a.Local.Acquire(ctx, key, ttl)
	if err != nil || a.extend == nil {
		return lease, err
	}
	return &askedLease{lease, a}, nil
}

func (a *asked) times() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

type askedLease struct {
	recompute.Lease
	of *asked
}

func (h *askedLease) Extend(ctx context.Context, ttl time.Duration) error {
	if err := h.of.extend(ctx); err != nil {
		return err
	}
	return h.Lease.Extend(ctx, ttl)
}

func guard(t *testing.T, l recompute.Locker, o recompute.GuardOptions) *recompute.Guard {
	t.Helper()
	g, err := recompute.NewGuard(l, o)
	require.NoError(t, err)
	return g
}

// holdsKey says whether somebody holds the lease of "k".
func holdsKey(t *testing.T, l *recompute.Local) bool {
	t.Helper()
	lease, err := l.Acquire(t.Context(), "k", time.Nanosecond)
	if err == nil {
		require.NoError(t, lease.Release(t.Context()))
	}
	return err != nil
}

func TestWorkRunsUnderALeaseThatIsReleasedHoweverItEnds(t *testing.T) {
	for name, end := range map[string]func() error{
		"with nil":     func() error { return nil },
		"with error":   func() error { return errWork },
		"with a panic": func() error { panic(errWork) },
		"with Goexit":  func() error { runtime.Goexit(); return nil },
	} {
		for call, do := range map[string]func(g *recompute.Guard, ctx context.Context, work func(context.Context, *recompute.Held) error) error{
			"Do": func(g *recompute.Guard, ctx context.Context, work func(context.Context, *recompute.Held) error) error {
				return g.Do(ctx, "k", work)
			},
			"Try": func(g *recompute.Guard, ctx context.Context, work func(context.Context, *recompute.Held) error) error {
				_, err := g.Try(ctx, "k", work)
				return err
			},
		} {
			t.Run(call+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := new(recompute.Local)
					g := guard(t, l, recompute.GuardOptions{})
					var all sync.WaitGroup
					var got error
					var panicked any
					returned := false
					all.Go(func() { // Goexit ends it
						defer func() { panicked = recover() }()
						got = do(g, t.Context(), func(context.Context, *recompute.Held) error {
							assert.True(t, holdsKey(t, l))
							return end()
						})
						returned = true
					})
					all.Wait()
					assert.False(t, holdsKey(t, l), "released")
					switch name {
					case "with nil":
						assert.NoError(t, got)
					case "with error":
						assert.Equal(t, errWork, got)
					case "with a panic":
						assert.Equal(t, errWork, panicked, "passed on as it was, for those who recover")
					}
					assert.Equal(t, name == "with nil" || name == "with error", returned)
				})
			})
		}
	}
}

func TestDoWaitsForTheHolderAndIsWokenByItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(asked)
		g := guard(t, l, recompute.GuardOptions{Wait: time.Hour, Retry: recompute.Backoff{Min: time.Minute, Max: time.Minute, Jitter: 0.1}, TTL: time.Minute})
		running, release := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			assert.NoError(t, g.Do(t.Context(), "k", func(context.Context, *recompute.Held) error {
				close(running)
				<-release
				return nil
			}))
		})
		<-running
		began := time.Now()
		all.Go(func() {
			assert.NoError(t, g.Do(t.Context(), "k", func(_ context.Context, h *recompute.Held) error {
				assert.Equal(t, 7*time.Second, time.Since(began), "at the moment of the release")
				waited, refused := h.Waited()
				assert.Equal(t, 7*time.Second, waited)
				assert.Equal(t, 2, refused, "before it listened, and at once after")
				return nil
			}))
		})
		time.Sleep(7 * time.Second)
		close(release)
		all.Wait()
		assert.Len(t, l.times(), 4)
	})
}

func TestOneReleaseWakesOneWaiterTheOneThatCameFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(asked)
		g := guard(t, l, recompute.GuardOptions{Wait: time.Hour, Retry: recompute.Backoff{Min: time.Hour, Max: time.Hour, Jitter: 0.1}, TTL: time.Hour})
		var all sync.WaitGroup
		var order []int
		for n := range 20 {
			all.Go(func() {
				assert.NoError(t, g.Do(t.Context(), "k", func(context.Context, *recompute.Held) error {
					order = append(order, n)
					time.Sleep(time.Minute)
					return nil
				}))
			})
			time.Sleep(time.Second)
		}
		all.Wait()
		assert.IsIncreasing(t, order)
		assert.Len(t, l.times(), 1+19*2+1, "each asks when it comes and when it is woken, the first of them also once it listens")
	})
}

func TestTryIsSkippedWhileAnotherHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(asked)
		g := guard(t, l, recompute.GuardOptions{})
		ran, err := g.Try(t.Context(), "k", func(ctx context.Context, _ *recompute.Held) error {
			ran, err := guard(t, l, recompute.GuardOptions{}).Try(ctx, "k", never(t))
			assert.False(t, ran)
			return err
		})
		assert.True(t, ran)
		require.NoError(t, err)
		assert.Len(t, l.times(), 2, "it asks once")
	})
}

// never is work that must not run.
func never(t *testing.T) func(context.Context, *recompute.Held) error {
	return func(context.Context, *recompute.Held) error {
		t.Error("the work ran")
		return nil
	}
}

func TestWorkThatWasNotRunHasAnErrorThatNamesTheReason(t *testing.T) {
	gone := errors.New("the caller has gone")
	const wait = 3 * time.Second
	for name, c := range map[string]struct {
		answer error
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		why    []error
		after  time.Duration
	}{
		"held by another": {answer: &recompute.HeldError{Left: time.Hour}, why: []error{recompute.ErrHeld}, after: wait},
		"nobody can tell": {answer: errNoAnswer, why: []error{errNoAnswer}, after: wait},
		"the caller's deadline": {
			answer: recompute.ErrHeld, why: []error{context.DeadlineExceeded, recompute.ErrHeld}, after: time.Second,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
		},
		"the caller's leaving": {
			answer: recompute.ErrHeld, why: []error{gone, recompute.ErrHeld}, after: 0,
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(ctx)
				cancel(gone)
				return ctx, func() {}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := guard(t, &asked{acquire: func(context.Context, int) error { return c.answer }}, recompute.GuardOptions{Wait: wait})
				ctx, cancel := t.Context(), func() {}
				if c.ctx != nil {
					ctx, cancel = c.ctx(ctx)
				}
				defer cancel()
				began := time.Now()
				err := g.Do(ctx, "k", never(t))
				assert.Equal(t, c.after, time.Since(began))
				require.ErrorIs(t, err, recompute.ErrNotRun)
				for _, why := range c.why {
					require.ErrorIs(t, err, why)
				}
				if errors.Is(c.answer, recompute.ErrHeld) {
					return
				}
				ran, err := g.Try(ctx, "k", never(t))
				assert.False(t, ran)
				require.ErrorIs(t, err, recompute.ErrNotRun)
				require.ErrorIs(t, err, c.answer)
			})
		})
	}
}

func TestALockerThatHangsIsGivenUpWithTheTimeToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, &asked{acquire: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }}, recompute.GuardOptions{Wait: time.Second})
		began := time.Now()
		require.ErrorIs(t, g.Do(t.Context(), "k", never(t)), recompute.ErrNotRun)
		assert.Equal(t, time.Second, time.Since(began))
	})
}

func TestALockerThatComesBackIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &asked{acquire: func(_ context.Context, n int) error {
			if n < 4 {
				return errNoAnswer
			}
			return nil
		}}
		var failed atomic.Int64
		g := guard(t, l, recompute.GuardOptions{Trace: recompute.Trace{Failed: func(error) { failed.Add(1) }}})
		require.NoError(t, g.Do(t.Context(), "k", func(context.Context, *recompute.Held) error { return nil }))
		assert.EqualValues(t, 3, failed.Load())
	})
}

func TestThoseWhoWaitAskAfterGrowingPausesThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen [2][]time.Duration
		for i := range seen {
			l := &asked{acquire: func(context.Context, int) error { return recompute.ErrHeld }}
			g := guard(t, struct{ recompute.Locker }{l}, recompute.GuardOptions{Wait: time.Minute}) // that can't wake
			require.Error(t, g.Do(t.Context(), "k", never(t)))
			at := l.times()
			for n := range len(at) - 1 {
				seen[i] = append(seen[i], at[n+1].Sub(at[n]))
			}
			for n, pause := range seen[i] {
				most := min(50*time.Millisecond<<min(n, 10), time.Second)
				assert.InDelta(t, most, pause, float64(most)/2)
			}
			assert.Less(t, len(at), 140)
		}
		assert.NotEqual(t, seen[0], seen[1])
	})
}

func TestALeaseThatEndsByItselfIsAskedForThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(asked)
		_, err := l.Acquire(t.Context(), "k", 5*time.Second) // by one who died
		require.NoError(t, err)
		g := guard(t, l, recompute.GuardOptions{Retry: recompute.Backoff{Min: time.Minute, Max: time.Minute, Jitter: 0.1}})
		began := time.Now()
		require.NoError(t, g.Do(t.Context(), "k", func(context.Context, *recompute.Held) error { return nil }))
		assert.InDelta(t, 5*time.Second+11*time.Millisecond, time.Since(began), float64(10*time.Millisecond))
	})
}

func TestWorkThatAsksForItsOwnKeyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, new(recompute.Local), recompute.GuardOptions{})
		began := time.Now()
		var late context.Context
		require.NoError(t, g.Do(t.Context(), "k", func(ctx context.Context, _ *recompute.Held) error {
			late = ctx
			require.ErrorIs(t, g.Do(ctx, "k", never(t)), recompute.ErrRecursive)
			return g.Do(ctx, "another", func(context.Context, *recompute.Held) error { return nil })
		}))
		assert.Zero(t, time.Since(began))
		require.NoError(t, g.Do(context.WithoutCancel(late), "k", func(context.Context, *recompute.Held) error { return nil }))
	})
}

func TestOneLeaseForEverythingIsRefused(t *testing.T) {
	g := guard(t, new(recompute.Local), recompute.GuardOptions{})
	require.ErrorIs(t, g.Do(t.Context(), "", never(t)), recompute.ErrNotRun)
	ran, err := g.Try(t.Context(), "", never(t))
	require.ErrorIs(t, err, recompute.ErrNotRun)
	assert.False(t, ran)
}

func TestNoLeaseIsAskedForNoWork(t *testing.T) {
	g := guard(t, new(recompute.Local), recompute.GuardOptions{Trace: recompute.Trace{Acquired: func(time.Duration) { t.Error("a lease was granted") }}})
	err := g.Do(t.Context(), "key", nil)
	require.ErrorIs(t, err, recompute.ErrNotRun)
	require.ErrorContains(t, err, "work is nil")
	ran, err := g.Try(t.Context(), "key", nil)
	require.ErrorIs(t, err, recompute.ErrNotRun)
	require.ErrorContains(t, err, "work is nil")
	assert.False(t, ran)
}
