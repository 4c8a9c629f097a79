package cache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// guest is a caller who can be sent away.
type guest struct {
	reply
	leave context.CancelFunc
	gone  chan struct{}
}

// join has n callers ask replica i and returns when they wait.
func join(f *fleet, i, n int, compute cache.Compute[string]) []*guest {
	guests := make([]*guest, n)
	for j := range guests {
		ctx, cancel := context.WithCancel(f.t.Context())
		g := &guest{leave: cancel, gone: make(chan struct{})}
		go func() {
			defer close(g.gone)
			g.reply = f.askFor(ctx, i, "k", compute)
		}()
		synctest.Wait() // one after the other: the first leads
		guests[j] = g
	}
	return guests
}

// wait returns the replies.
func wait(guests ...*guest) []reply {
	replies := make([]reply, len(guests))
	for i, g := range guests {
		<-g.gone
		replies[i] = g.reply
	}
	return replies
}

// watched computes like compute and keeps the cause of the end of its context.
func (f *fleet) watched(cause *error) cache.Compute[string] {
	return func(ctx context.Context) (string, error) {
		v, err := f.compute(ctx)
		*cause = context.Cause(ctx)
		return v, err
	}
}

// Guarantee 7; case 1.
func TestALeadersCancelNeitherFailsNorRestartsItsFollowers(t *testing.T) {
	leaves := map[string]func(g *guest){
		"cancel":   func(g *guest) { g.leave() },
		"deadline": nil,
	}
	for says, leave := range leaves {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 1, cache.Options[string]{Policy: plain})
				var first *guest
				if leave == nil {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
					defer cancel()
					first = &guest{gone: make(chan struct{})}
					go func() {
						defer close(first.gone)
						first.reply = f.askFor(ctx, 0, "k", f.compute)
					}()
					synctest.Wait()
				} else {
					first = join(f, 0, 1, f.compute)[0]
				}
				rest := join(f, 0, 50, f.compute)
				time.Sleep(20 * time.Millisecond)
				if leave != nil {
					leave(first)
				}
				r := wait(first)[0]
				require.Error(t, r.err)
				require.Equal(t, 20*time.Millisecond, r.took, "it returns at once")
				all := wait(rest...)
				values(t, "v1", all)
				for _, r := range all {
					require.Equal(t, f.takes, r.took)
				}
				assert.EqualValues(t, 1, f.runs.Load())
				assert.Equal(t, 50, count(cache.Collapsed, all))
			})
		})
	}
}

func TestWhenMostCancelTheRestIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		guests := append(join(f, 0, 20, f.compute), join(f, 1, 20, f.compute)...)
		last := []*guest{guests[7], guests[33]}
		for _, g := range guests {
			if g != last[0] && g != last[1] {
				g.leave()
				require.ErrorIs(t, wait(g)[0].err, context.Canceled)
			}
		}
		values(t, "v1", wait(last...))
		assert.EqualValues(t, 1, f.runs.Load())
	})
}

func TestWhenEveryoneCancelsTheWorkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain})
		var cause error
		guests := join(f, 0, 20, f.watched(&cause))
		for _, g := range guests {
			g.leave()
		}
		for _, r := range wait(guests...) {
			require.ErrorIs(t, r.err, context.Canceled)
			require.Zero(t, r.took)
		}
		synctest.Wait()
		assert.Zero(t, f.now.Load())
		assert.ErrorIs(t, cause, recompute.ErrAbandoned)
		assert.Zero(t, f.replicas[0].InFlight())
		f.free("k")
		r := f.ask(0, "k")
		values(t, "v2", []reply{r})
		assert.Equal(t, cache.Computed, r.Outcome)
		assert.Equal(t, f.takes, r.took)
	})
}

func TestWhenEveryoneOfAProcessCancelsAnotherTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		mine, theirs := join(f, 0, 5, f.compute), join(f, 1, 5, f.compute)
		time.Sleep(f.takes / 2)
		for _, g := range mine {
			g.leave()
		}
		all := wait(theirs...)
		values(t, "v2", all)
		assert.Equal(t, f.takes/2+f.takes, all[0].took, "at once, not when the lease has run out")
		assert.EqualValues(t, 2, f.runs.Load())
	})
}

// A caller whose time is up still wants the value.
func TestWhoeverLeavesByDeadlineKeepsTheComputation(t *testing.T) {
	for _, by := range []string{"ctx", "Wait"} {
		t.Run(by, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := cache.Options[string]{Policy: plain}
				ctx, want := t.Context(), recompute.ErrBusy
				if by == "Wait" {
					o.Wait = 100 * time.Millisecond
				} else {
					var cancel func()
					ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
					defer cancel()
					want = context.DeadlineExceeded
				}
				f := newFleet(t, 1, o)
				others := join(f, 0, 5, f.compute)
				r := f.askFor(ctx, 0, "k", f.compute)
				require.ErrorIs(t, r.err, want)
				for _, g := range others {
					g.leave() // and they cancel: something is owed all the same
				}
				wait(others...)
				time.Sleep(f.takes)
				f.stands("k", "v1")
				assert.EqualValues(t, 1, f.runs.Load())
				assert.Equal(t, cache.Hit, f.ask(0, "k").Outcome)
			})
		})
	}
}

// The read of a miss may take its time; who cancels meanwhile wants no computation.
func TestWhoeverCancelsDuringTheReadStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m, before: func(context.Context, string) error { time.Sleep(time.Second); return nil }}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, store)
		guests := join(f, 0, 3, f.compute)
		for _, g := range guests {
			g.leave()
		}
		wait(guests...)
		time.Sleep(10 * time.Second)
		assert.Zero(t, f.runs.Load(), "nobody is left who wants it")
		f.stands("k", "")
	})
}

func TestWhoeverCancelsDuringTheReadTakesNobodyAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m, before: func(context.Context, string) error { time.Sleep(time.Second); return nil }}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, store)
		guests := join(f, 0, 4, f.compute) // the first has its own read, the others share the next
		guests[0].leave()
		guests[1].leave()
		values(t, "v1", wait(guests[2:]...))
		assert.EqualValues(t, 1, f.runs.Load())
	})
}

func TestAStaleRefreshGoesOnWithoutItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: windows})
		f.store("k", "old")
		time.Sleep(windows.Fresh)
		ctx, cancel := context.WithCancel(t.Context())
		r := f.askFor(ctx, 0, "k", f.compute)
		cancel()
		require.Equal(t, cache.Stale, r.Outcome)
		time.Sleep(f.takes)
		synctest.Wait()
		f.stands("k", "v1")
	})
}

// The context of a computation has the values of a caller, and not its end.
func TestAComputationKeepsTheValuesOfItsCaller(t *testing.T) {
	type user struct{}
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: windows})
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), user{}, "jane"), time.Minute)
		defer cancel()
		named := func(ctx context.Context) (string, error) {
			until, _ := ctx.Deadline()
			assert.Equal(t, 30*time.Second, time.Until(until), "the limit, not the caller's deadline")
			name, _ := ctx.Value(user{}).(string)
			if name == "" {
				return "", errors.New("nobody")
			}
			return name, nil
		}
		values(t, "jane", []reply{f.askFor(ctx, 0, "k", named)})
		time.Sleep(windows.Fresh)
		again, cancel := context.WithCancel(context.WithValue(t.Context(), user{}, "joe"))
		values(t, "jane", []reply{f.askFor(again, 0, "k", named)})
		cancel() // behind the answer too
		synctest.Wait()
		f.stands("k", "joe")
	})
}

// Case 9, second half: callers one after the other do not share a failure.
func TestOneCallAfterAnotherMakesItsOwnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain})
		f.down.Store(true)
		for range 2 {
			require.ErrorIs(t, f.ask(0, "k").err, errDown)
		}
		assert.EqualValues(t, 2, f.runs.Load())
	})
}

// Case 9: 200 callers whose replies come late and apart.
func TestAMissThatIsOlderThanThePublicationIsNotComputed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		slow := &shim{Memory: m, after: func(_ context.Context, step string) error {
			if step == "get" {
				time.Sleep(time.Duration(time.Now().UnixNano() % 500_000))
			}
			return nil
		}}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, slow, slow, slow, slow)
		f.takes = 100 * time.Microsecond
		for i := range 200 {
			var all sync.WaitGroup
			key := string(rune('a' + i))
			for j := range 200 {
				all.Go(func() {
					time.Sleep(time.Duration(j*j%97) * 10 * time.Microsecond)
					assert.NoError(t, f.ask(j%4, key).err)
				})
			}
			all.Wait()
		}
		assert.EqualValues(t, 200, f.runs.Load())
	})
}
