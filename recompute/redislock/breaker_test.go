package redislock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// openFor is how long a breaker lets nothing through.
const openFor = 500 * time.Millisecond

// states collects what a breaker tells.
type states struct {
	mu   sync.Mutex
	told []string
	errs []error
}

func (s *states) tell(state string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told, s.errs = append(s.told, state), append(s.errs, err)
}

func (s *states) all() ([]string, []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told), slices.Clone(s.errs)
}

// breaking returns a warm locker, its steps and what their breakers tell.
func breaking(t testing.TB, c *redis.Client) (*redislock.Locker, *redislock.Steps, *states) {
	told := new(states)
	steps := redislock.NewSteps(c, redislock.StepOptions{Breaker: told.tell})
	l := redislock.On(steps, space, "")
	warm(t, l)
	return l, steps, told
}

// get reads something.
func get(ctx context.Context, s *redislock.Steps, c *redis.Client) error {
	_, err := redislock.Do(ctx, s, func(ctx context.Context) (string, error) { return c.Get(ctx, "k").Result() })
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

func TestAfterThreeFailuresInARowNothingWaitsForRedis(t *testing.T) {
	t.Parallel()
	w := through(t)
	l, steps, told := breaking(t, w.inside)
	lease := acquire(t, l, "held", time.Second)
	require.NoError(t, w.Pause())
	ask := func() error {
		_, err := l.Acquire(t.Context(), "key", 100*time.Millisecond)
		return err
	}
	read := func() error { return get(t.Context(), steps, w.inside) } // first: what asks for a lease is also taken back, which fails as well
	for _, step := range []func() error{read, read, ask} {
		err := step()
		require.ErrorIs(t, err, redislock.ErrBudget)
		require.NotErrorIs(t, err, redislock.ErrOpen)
	}
	timely(t, 0, func() {
		err := ask()
		require.ErrorIs(t, err, redislock.ErrOpen)
		require.ErrorIs(t, err, redislock.ErrBudget, "which opened it")
	})
	timely(t, 50*time.Millisecond, func() { require.Error(t, lease.Release(t.Context())) })

	require.NoError(t, w.Resume())
	began := time.Now()
	require.Eventually(t, func() bool { return ask() == nil }, 2*time.Second, 10*time.Millisecond)
	assert.Less(t, time.Since(began), openFor+budget+time.Second, "it is back by itself")
	states, errs := told.all()
	assert.Equal(t, []string{"link open", "link half-open"}, states[:2])
	assert.Equal(t, "link closed", states[len(states)-1])
	assert.ErrorIs(t, errs[0], redislock.ErrBudget)
	assert.NoError(t, errs[len(errs)-1], "no news is good news")
	noLock(t, w.outside, 0)
}

func TestAnOpenBreakerLetsOneProbeThroughEachTime(t *testing.T) {
	t.Parallel()
	w := through(t)
	_, steps, _ := breaking(t, w.inside)
	hits := w.proxy.On(faultproxy.Rule{Marker: "get", Do: faultproxy.Answer, Say: "-LOADING no"})
	for range 3 {
		require.Error(t, get(t.Context(), steps, w.inside))
	}
	sent := hits.Count()
	began := time.Now()
	var refused int
	for time.Since(began) < 2*openFor+openFor/2 { // a crowd that never stops asking
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { _ = get(t.Context(), steps, w.inside) })
		}
		all.Wait()
		refused += 10
		time.Sleep(5 * time.Millisecond)
	}
	probes := hits.Count() - sent
	assert.LessOrEqual(t, probes, 3*4, "two or three probes, and go-redis tries each four times") // LOADING is tried again
	assert.Positive(t, probes)
	assert.Greater(t, refused, 100)
}

func TestACallerThatLeavesSaysNothingAboutRedis(t *testing.T) {
	t.Parallel()
	w := through(t)
	l, _, told := breaking(t, w.inside)
	require.NoError(t, w.Pause())
	for range 6 {
		_, err := l.Acquire(within(t, 10*time.Millisecond), "key", 10*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, redislock.ErrOpen)
		require.NoError(t, w.Resume()) // so that what is taken back doesn't count either
		time.Sleep(20 * time.Millisecond)
		require.NoError(t, w.Pause())
	}
	require.NoError(t, w.Resume())
	states, _ := told.all()
	assert.Empty(t, states)
}

func TestAServerThatTakesNoWritesIsStillRead(t *testing.T) {
	t.Parallel()
	w := through(t)
	l, steps, told := breaking(t, w.inside)
	w.proxy.On(faultproxy.Rule{Marker: "evalsha", Do: faultproxy.Answer, Say: "-OOM command not allowed when used memory > 'maxmemory'."})
	for range 3 {
		_, err := l.Acquire(t.Context(), "key", 100*time.Millisecond)
		require.ErrorContains(t, err, "OOM")
	}
	_, err := l.Acquire(t.Context(), "key", 100*time.Millisecond)
	require.ErrorIs(t, err, redislock.ErrOpen)
	require.NoError(t, get(t.Context(), steps, w.inside))
	w.proxy.Heal()
	require.Eventually(t, func() bool { _, err := l.Acquire(t.Context(), "key", long); return err == nil }, 2*time.Second, 10*time.Millisecond)
	states, _ := told.all()
	assert.Equal(t, "writes open", states[0])
	assert.NotContains(t, states, "link open")
}

func TestAnswersOfAHealthyServerAreNoFailures(t *testing.T) {
	t.Parallel()
	w := through(t)
	l, steps, told := breaking(t, w.inside)
	acquire(t, l, "held", long)
	for range 10 {
		_, err := l.Acquire(t.Context(), "held", long)
		require.Error(t, err)
		require.NoError(t, get(t.Context(), steps, w.inside))
		_, err = redislock.Do(t.Context(), steps, func(ctx context.Context) (string, error) { return w.inside.LPop(ctx, "app:l:{held}").Result() })
		require.ErrorContains(t, err, "WRONGTYPE")
	}
	states, _ := told.all()
	assert.Empty(t, states)
}
