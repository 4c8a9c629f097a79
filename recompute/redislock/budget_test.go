package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// paused returns the address of a server that a warm client has connections to, and that answers nothing any more.
func paused(t testing.TB, change func(*redis.Options)) *redis.Client {
	s := redistest.Start(t)
	c := redistest.Client(t, s, change)
	warm(t, newLocker(c))
	require.NoError(t, redistest.Client(t, s).Do(t.Context(), "CLIENT", "PAUSE", "60000", "ALL").Err())
	return c
}

// outages are the ways in which a server can be away.
var outages = map[string]func(t testing.TB, change func(*redis.Options)) *redis.Client{
	"refused": func(t testing.TB, change func(*redis.Options)) *redis.Client {
		return to(t, faultproxy.Refused(t), change)
	},
	"silent": func(t testing.TB, change func(*redis.Options)) *redis.Client {
		return to(t, faultproxy.Silent(t), change)
	},
	"paused": paused,
}

func TestNoStepTakesLongerThanItsBudgetOrItsCallersPatience(t *testing.T) {
	t.Parallel()
	const patience = 50 * time.Millisecond
	for outage, start := range outages {
		for name, change := range clients {
			t.Run(outage+", "+name, func(t *testing.T) {
				l := newLocker(start(t, change))
				quick := outage == "refused" && name == "client that never tries again" // knows before its time is up
				ask := func(ctx context.Context, want error) func() {
					return func() {
						_, err := l.Acquire(ctx, "key", time.Second)
						require.Error(t, err)
						require.NotErrorIs(t, err, recompute.ErrHeld)
						if !quick && !errors.Is(err, redislock.ErrOpen) { // which a busy machine's further tries may find
							require.ErrorIs(t, err, want)
						}
					}
				}
				timely(t, budget, ask(t.Context(), redislock.ErrBudget))
				timely(t, patience, func() {
					ask(within(t, patience), context.DeadlineExceeded)()
				})
				cancelled := patience
				if name == "client that keeps deadlines" {
					cancelled = budget // go-redis can't be cancelled under way, and this client is trusted with its deadlines
				}
				timely(t, cancelled, func() {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(patience, cancel)
					ask(ctx, context.Canceled)()
				})
			})
		}
	}
}

func TestAHolderIsNotHeldUpWhenItsServerIsAway(t *testing.T) {
	t.Parallel()
	for name, change := range clients {
		t.Run(name, func(t *testing.T) {
			w := through(t, change)
			l := newLocker(w.inside)
			warm(t, l)
			lease := acquire(t, l, "key", time.Second)
			require.NoError(t, w.Pause())
			timely(t, budget, func() {
				err := lease.Extend(t.Context(), time.Second)
				require.ErrorIs(t, err, redislock.ErrBudget)
				require.NotErrorIs(t, err, recompute.ErrLost)
			})
			timely(t, 3*budget+45*time.Millisecond, func() {
				err := lease.Release(t.Context())
				require.ErrorIs(t, err, redislock.ErrBudget)
				require.NotErrorIs(t, err, recompute.ErrLost)
			})
			require.NoError(t, w.Resume())
			noLock(t, w.outside, 0)
		})
	}
}

func TestALockerComesBackWithItsServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := newLocker(redistest.Client(t, s))
	warm(t, l)
	require.NoError(t, s.Kill())
	_, err := l.Acquire(t.Context(), "key", 300*time.Millisecond)
	require.Error(t, err)
	require.NoError(t, s.Restart()) // and it knows no script
	require.Eventually(t, func() bool {
		lease, err := l.Acquire(t.Context(), "key", long)
		return err == nil && lease.Release(t.Context()) == nil
	}, 5*time.Second, 10*time.Millisecond)
}

func TestAFullPoolHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	w := through(t, func(o *redis.Options) { o.PoolSize = 1 })
	l := newLocker(w.inside)
	warm(t, l)
	busy := make(chan error)
	go func() { busy <- w.inside.BLPop(t.Context(), time.Second, "nothing comes").Err() }()
	time.Sleep(50 * time.Millisecond)
	timely(t, budget, func() {
		_, err := l.Acquire(t.Context(), "key", long)
		require.ErrorIs(t, err, redislock.ErrBudget)
	})
	assert.ErrorIs(t, <-busy, redis.Nil)
	noLock(t, w.outside, 0)
}

// Hold's timer is its own: it depends on no answer.
func TestTheWorkOfAHolderEndsBeforeItsLeaseWhenTheServerFreezes(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	w := through(t)
	l := newLocker(w.inside)
	warm(t, l)
	since := time.Now()
	lease := acquire(t, l, "key", ttl)
	work, stop := recompute.Hold(t.Context(), nil, lease, since, ttl, recompute.Trace{})
	defer stop()
	time.Sleep(ttl + ttl/4) // it has been extended at least three times
	require.NoError(t, work.Err())
	require.NoError(t, w.Pause())
	froze := time.Now()
	<-work.Done()
	assert.Less(t, time.Since(froze), ttl)
	assert.Equal(t, recompute.ErrLost, context.Cause(work))
	require.NoError(t, w.Resume())
	_ = lease.Release(t.Context()) // it may have ended by itself
	noLock(t, w.outside, 0)
}

func TestTheWorkOfAHolderEndsWhenAnotherHasTheLease(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	c := redistest.Client(t, redistest.Start(t))
	l := newLocker(c)
	since := time.Now()
	lease := acquire(t, l, "key", ttl)
	work, stop := recompute.Hold(t.Context(), nil, lease, since, ttl, recompute.Trace{})
	defer stop()
	require.NoError(t, c.FlushAll(t.Context()).Err())
	acquire(t, l, "key", long)
	<-work.Done()
	assert.Less(t, time.Since(since), ttl/2, "at the next extension")
	assert.Equal(t, recompute.ErrLost, context.Cause(work))
}
