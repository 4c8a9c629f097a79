package redislock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// go-redis sends a command again whose reply it lost; the second time, the key is there.
func TestAnAcquireWhoseReplyIsLostIsGrantedAllTheSame(t *testing.T) {
	t.Parallel()
	for name, change := range clients {
		t.Run(name, func(t *testing.T) {
			w := through(t, change)
			l := patient(w.inside)
			warm(t, l)
			hits := w.proxy.On(faultproxy.Rule{Marker: script(t, "acquire"), Nth: 1, Do: faultproxy.DropReply})
			began := time.Now()
			lease, err := l.Acquire(t.Context(), "key", 10*time.Second)
			assert.Less(t, time.Since(began), budget+slack)
			require.Equal(t, 1, hits.Count())
			if name == "client that never tries again" { // then the outcome is unknown, and it is taken back
				require.Error(t, err)
				require.NotErrorIs(t, err, recompute.ErrHeld)
				noLock(t, w.outside, 0)
				lease, err = l.Acquire(t.Context(), "key", 10*time.Second)
			}
			require.NoError(t, err)
			require.Len(t, locks(t, w.outside), 1)
			require.NoError(t, lease.Release(t.Context()))
			assert.Empty(t, locks(t, w.outside))
		})
	}
}

func TestAnAcquireWithoutAReplyIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, change := range clients {
		t.Run(name, func(t *testing.T) {
			w := through(t, change)
			l := newLocker(w.inside)
			warm(t, l)
			hits := w.proxy.On(faultproxy.Rule{Marker: script(t, "acquire"), Do: faultproxy.StallReply})
			began := time.Now()
			_, err := l.Acquire(t.Context(), "key", long)
			require.ErrorIs(t, err, redislock.ErrBudget)
			assert.GreaterOrEqual(t, time.Since(began), budget)
			require.Equal(t, 1, hits.Count())
			noLock(t, w.outside, 0)
			w.proxy.Heal()
			acquire(t, l, "key", long)
		})
	}
}

// The request arrives when its undoing has long been done.
func TestAnAcquireThatArrivesAfterItWasTakenBackIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range clients {
		t.Run(name, func(t *testing.T) {
			w := through(t, change)
			l := newLocker(w.inside)
			warm(t, l)
			const late = 600 * time.Millisecond
			w.proxy.On(faultproxy.Rule{Marker: script(t, "acquire"), Nth: 1, Do: faultproxy.Delay, For: late})
			released := w.proxy.On(faultproxy.Rule{Marker: script(t, "release"), Do: faultproxy.Delay})
			counter := redistest.Commands(t, w.Server)
			_, err := l.Acquire(t.Context(), "key", long)
			require.ErrorIs(t, err, redislock.ErrBudget)
			require.Eventually(t, func() bool { return released.Count() == 1 }, soon, time.Millisecond)
			noLock(t, w.outside, late)
			assert.Contains(t, fmt.Sprint(counter.Stop()), script(t, "acquire"), "it did arrive")
			acquire(t, l, "key", long)
		})
	}
}

// The first request was granted but its reply lost; go-redis sent it again, and that arrives after the taking back of the first.
func TestARepeatedAcquireThatArrivesAfterItWasTakenBackIsRefused(t *testing.T) {
	t.Parallel()
	w := through(t)
	l := newLocker(w.inside)
	warm(t, l)
	const late = 600 * time.Millisecond
	acquired := w.proxy.On(faultproxy.Rule{Marker: script(t, "acquire"), Nth: 1, Do: faultproxy.DropReply})
	repeated := w.proxy.On(faultproxy.Rule{Marker: script(t, "acquire"), Nth: 2, Do: faultproxy.Delay, For: late})
	_, err := l.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, redislock.ErrBudget)
	require.Equal(t, []int{1, 1}, []int{acquired.Count(), repeated.Count()})
	noLock(t, w.outside, late)
}

func TestAnAcquireThatItsCallerGaveUpLeavesNoLease(t *testing.T) {
	t.Parallel()
	for name, change := range clients {
		for how, fault := range map[string]faultproxy.Rule{
			"while the answer is awaited":      {Do: faultproxy.StallReply},
			"while the request is on its way":  {Do: faultproxy.Delay, For: 150 * time.Millisecond},
			"while the connection breaks down": {Do: faultproxy.DropReply},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				w := through(t, change)
				l := patient(w.inside)
				warm(t, l)
				fault.Marker = script(t, "acquire")
				w.proxy.On(fault)
				for _, end := range []func() (context.Context, context.CancelFunc){
					func() (context.Context, context.CancelFunc) {
						ctx, cancel := context.WithCancel(t.Context())
						time.AfterFunc(50*time.Millisecond, cancel)
						return ctx, cancel
					},
					func() (context.Context, context.CancelFunc) {
						return context.WithTimeout(t.Context(), 50*time.Millisecond)
					},
				} {
					ctx, cancel := end()
					_, err := l.Acquire(ctx, "key", long)
					cancel()
					require.Error(t, err)
					require.NotErrorIs(t, err, recompute.ErrHeld)
					time.Sleep(fault.For)
					noLock(t, w.outside, 100*time.Millisecond)
				}
			})
		}
	}
}

func TestAReleaseWhoseReplyIsLostIsARelease(t *testing.T) {
	t.Parallel()
	for name, change := range clients {
		for how, fault := range map[string]faultproxy.Fault{"dropped": faultproxy.DropReply, "stalled": faultproxy.StallReply} {
			t.Run(name+" "+how, func(t *testing.T) {
				w := through(t, change)
				w.loseReleased(t, newLocker(w.inside), script(t, "release"), fault)
			})
		}
	}
}

// loseReleased has the first try of a release, which shows as marker on the wire, be done and its reply lost.
func (w trouble) loseReleased(t *testing.T, l *redislock.Locker, marker string, fault faultproxy.Fault) {
	t.Helper()
	warm(t, l)
	lease := acquire(t, l, "key", long)
	hits := w.proxy.On(faultproxy.Rule{Marker: marker, Nth: 1, Do: fault})
	require.NoError(t, lease.Release(t.Context()))
	require.Equal(t, 1, hits.Count())
	assert.Empty(t, locks(t, w.outside))
	require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
}

// "Nobody holds it" may be the work of an earlier try; "another holds it" may not.
func TestAReleaseThatIsTriedAgainTellsALossFromItsOwnWork(t *testing.T) {
	t.Parallel()
	through(t).tryForeignAgain(t, script(t, "release"))
}

// tryForeignAgain has the first try of a release, which shows as marker on the wire, be lost, and the lease be another's by then.
func (w trouble) tryForeignAgain(t *testing.T, marker string) {
	t.Helper()
	l := patient(w.inside)
	warm(t, l)
	lease := acquire(t, l, "key", long)
	require.NoError(t, w.outside.FlushAll(t.Context()).Err())
	successor := acquire(t, patient(w.outside), "key", long)
	hits := w.proxy.On(faultproxy.Rule{Marker: marker, Nth: 1, Do: faultproxy.DropRequest})
	require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
	require.Equal(t, 1, hits.Count())
	require.NoError(t, successor.Release(t.Context()))
}

func TestAReleaseThatNeverArrivesIsAnErrorThatIsNotALoss(t *testing.T) {
	t.Parallel()
	w := through(t)
	l := patient(w.inside)
	warm(t, l)
	lease := acquire(t, l, "key", long)
	w.proxy.On(faultproxy.Rule{Marker: script(t, "release"), Do: faultproxy.DropRequest})
	began := time.Now()
	err := lease.Release(t.Context())
	require.Error(t, err)
	require.NotErrorIs(t, err, recompute.ErrLost)
	assert.Less(t, time.Since(began), 3*budget+100*time.Millisecond)
	require.Len(t, locks(t, w.outside), 1, "until its TTL")
}

func TestAnExtensionWhoseReplyIsLostIsAnExtension(t *testing.T) {
	t.Parallel()
	w := through(t)
	l := patient(w.inside)
	warm(t, l)
	lease := acquire(t, l, "key", 10*time.Second)
	hits := w.proxy.On(faultproxy.Rule{Marker: script(t, "extend"), Nth: 1, Do: faultproxy.DropReply})
	require.NoError(t, lease.Extend(t.Context(), long))
	require.Equal(t, 1, hits.Count())
}

// An extension that is still on its way when the lease is released must not bring it back.
func TestAnExtensionThatArrivesAfterTheReleaseChangesNothing(t *testing.T) {
	t.Parallel()
	w := through(t)
	l := patient(w.inside)
	warm(t, l)
	lease := acquire(t, l, "key", long)
	const late = 400 * time.Millisecond
	w.proxy.On(faultproxy.Rule{Marker: script(t, "extend"), Do: faultproxy.Delay, For: late})
	require.ErrorIs(t, lease.Extend(within(t, 50*time.Millisecond), long), context.DeadlineExceeded)
	require.NoError(t, lease.Release(t.Context()))
	noLock(t, w.outside, late)
}
