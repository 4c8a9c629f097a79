package redislock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
)

// An application that uses up its connections does not lose its leases, if they have a client of their own.
func TestALeaseWithAClientOfItsOwnOutlivesAPoolThatIsUsedUp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	app := redistest.Client(t, s, func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 10*time.Second })
	g := guard(t, fenced(t, redistest.Client(t, s)), recompute.GuardOptions{TTL: 2 * time.Second})
	require.NoError(t, g.Do(t.Context(), "key", func(ctx context.Context, h *recompute.Held) error {
		var all sync.WaitGroup
		defer all.Wait()
		for range 4 {
			all.Go(func() { app.BLPop(ctx, time.Second, "nothing") })
		}
		time.Sleep(3 * time.Second)
		assert.NoError(t, ctx.Err())
		assert.Positive(t, h.Extensions())
		return nil
	}))
}

func TestAFencedLockerWorksAfterTheServerForgotItsScripts(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t))
	l := fenced(t, c)
	warm(t, l)
	last := number(t, l)
	for range 3 {
		require.NoError(t, c.ScriptFlush(t.Context()).Err())
		n := number(t, l)
		assert.Greater(t, n, last)
		last = n
	}
}

// A network slower than the budget: an error in time, on a lease that nobody holds, and nothing that comes later.
func TestANetworkSlowerThanTheBudgetIsAnErrorAndNoHang(t *testing.T) {
	t.Parallel()
	w := through(t)
	warm(t, fenced(t, w.outside))
	l := newLocker(w.inside)
	w.proxy.On(faultproxy.Rule{Do: faultproxy.Delay, For: 600 * time.Millisecond})
	g := guard(t, l, recompute.GuardOptions{Wait: 2 * time.Second})
	began := time.Now()
	err := g.Do(t.Context(), "key", func(context.Context, *recompute.Held) error { return nil })
	require.ErrorIs(t, err, recompute.ErrNotRun)
	require.NotErrorIs(t, err, recompute.ErrHeld)
	assert.Less(t, time.Since(began), 2*time.Second+late)
	w.proxy.Heal()
	noLock(t, w.outside, 0)
}
