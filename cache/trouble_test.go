package cache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// broken is a store that fails at once while down is set.
type broken struct {
	*cache.Memory
	down atomic.Bool
}

func (b *broken) Get(ctx context.Context, k cache.Key) (cache.Entry, error) {
	if b.down.Load() {
		return cache.Entry{}, errDown
	}
	return b.Memory.Get(ctx, k)
}

func (b *broken) GetPromptly(context.Context, cache.Key) (cache.Entry, error) {
	return cache.Entry{}, errDown
}

func (b *broken) Begin(ctx context.Context, k cache.Key, seen cache.Fence, hold time.Duration) (cache.Fence, cache.Entry, error) {
	if b.down.Load() {
		return 0, cache.Entry{}, errDown
	}
	return b.Memory.Begin(ctx, k, seen, hold)
}

func (b *broken) Set(ctx context.Context, k cache.Key, w cache.Write) error {
	if b.down.Load() {
		return errDown
	}
	return b.Memory.Set(ctx, k, w)
}

func (b *broken) Delete(ctx context.Context, ago time.Duration, names ...string) error {
	if b.down.Load() {
		return errDown
	}
	return b.Memory.Delete(ctx, ago, names...)
}

func (b *broken) Locker() recompute.Locker { return brokenLocker{b} }

type brokenLocker struct{ b *broken }

func (l brokenLocker) Acquire(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	if l.b.down.Load() {
		return nil, errDown
	}
	return l.b.Memory.Locker().Acquire(ctx, key, ttl)
}

// tallied returns a computation of the given duration and the count of its runs.
func tallied(d time.Duration, value string) (cache.Compute[string], *atomic.Int64) {
	runs := new(atomic.Int64)
	return func(ctx context.Context) (string, error) {
		runs.Add(1)
		time.Sleep(d)
		return value, nil
	}, runs
}

func open(t *testing.T, s cache.Store, o cache.Options[string]) *cache.Cache[string] {
	c, err := cache.New[string](s, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// Case 38.
func TestWithoutTheStoreAValueIsComputedOncePerProcessAndLifetime(t *testing.T) {
	for says, near := range map[string]int{"with last known values": 0, "without": -1} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &broken{Memory: cache.NewMemory()}
				store.down.Store(true)
				c := open(t, store, cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute}, Near: near})
				compute, runs := tallied(100*time.Millisecond, "v")
				for range 10 {
					var callers sync.WaitGroup
					for range 100 {
						callers.Go(func() {
							v, err := c.GetOrCompute(t.Context(), "k", compute)
							assert.NoError(t, err)
							assert.Equal(t, "v", v)
						})
					}
					callers.Wait()
					time.Sleep(20 * time.Second)
				}
				if want := int64(4); near == 0 {
					assert.Equal(t, want, runs.Load(), "once in each lifetime")
				} else {
					assert.EqualValues(t, 10, runs.Load(), "once for each wave")
				}
			})
		})
	}
}

func TestADeletionThatFailedIsRepeatedUnlessSomethingNewerWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &broken{Memory: cache.NewMemory()}
		a := open(t, store, cache.Options[string]{Policy: stale.Policy{Fresh: time.Hour}})
		b := open(t, store.Memory, cache.Options[string]{Policy: stale.Policy{Fresh: time.Hour}})
		require.NoError(t, a.Set(t.Context(), "old", "1"))
		require.NoError(t, a.Set(t.Context(), "renewed", "1"))
		require.NoError(t, a.Set(t.Context(), "replaced", "1"))
		time.Sleep(time.Second)
		store.down.Store(true)
		assert.Zero(t, a.Undeleted())
		require.ErrorIs(t, a.Delete(t.Context(), "old", "renewed"), errDown)
		assert.Equal(t, 2, a.Undeleted())
		require.ErrorIs(t, a.Set(t.Context(), "replaced", "2"), errDown)
		time.Sleep(time.Second)
		require.NoError(t, b.Set(t.Context(), "renewed", "2"))
		time.Sleep(time.Second)
		store.down.Store(false)
		time.Sleep(2 * time.Second)
		for _, key := range []string{"old", "replaced"} {
			_, err := b.Get(t.Context(), key)
			require.ErrorIs(t, err, cache.ErrNotFound)
		}
		r, err := b.Get(t.Context(), "renewed")
		require.NoError(t, err)
		assert.Equal(t, "2", r.Value)
		assert.Zero(t, a.Undeleted())
	})
}

// Guarantee 19.
func TestAnAnswerThatMustNotBeStoredMakesNobodyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := cache.NewMemory()
		replicas := []*cache.Cache[string]{
			open(t, store, cache.Options[string]{Policy: stale.Policy{Fresh: time.Hour}}),
			open(t, store, cache.Options[string]{Policy: stale.Policy{Fresh: time.Hour}}),
		}
		var runs atomic.Int64
		began := time.Now()
		var callers sync.WaitGroup
		for i := range 50 {
			callers.Go(func() {
				_, err := replicas[i%2].GetOrCompute(t.Context(), "k", func(ctx context.Context) (string, error) {
					runs.Add(1)
					time.Sleep(100 * time.Millisecond)
					assert.True(t, cache.NoStore(ctx))
					return "v", nil
				})
				assert.NoError(t, err)
			})
		}
		callers.Wait()
		assert.LessOrEqual(t, time.Since(began), 200*time.Millisecond)
		assert.LessOrEqual(t, runs.Load(), int64(2))
		_, err := replicas[0].Get(t.Context(), "k")
		assert.ErrorIs(t, err, cache.ErrNotFound)
		assert.False(t, cache.NoStore(t.Context()))
	})
}

func TestACallersOwnErrorIsNotSharedNorRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Hour, Cooldown: time.Hour}})
		mine, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() {
			_, err := c.GetOrCompute(context.WithoutCancel(mine), "k", func(context.Context) (string, error) {
				<-mine.Done()
				return "", cache.Own(errors.New("no right to see it"))
			})
			assert.ErrorContains(t, err, "no right")
		})
		synctest.Wait()
		for range 10 {
			callers.Go(func() {
				v, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { return "v", nil })
				assert.NoError(t, err)
				assert.Equal(t, "v", v)
			})
		}
		synctest.Wait()
		leave()
		callers.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute, WhileRevalidate: time.Hour}})
		require.NoError(t, c.Set(t.Context(), "k", "old"))
		time.Sleep(time.Minute)
		_, err := c.Refresh(t.Context(), "k", func(context.Context) (string, error) { return "", cache.Own(errors.New("no right to see it")) })
		require.NoError(t, err, "there is the old one")
		compute, runs := tallied(0, "new")
		ask(t, c, compute)
		synctest.Wait()
		assert.EqualValues(t, 1, runs.Load(), "others' attempts behind an answer are not put off")
	})
}

func TestStaleIfDecidesWhichErrorsAStaleValueMayStandInFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := errors.New("forbidden")
		c := open(t, cache.NewMemory(), cache.Options[string]{
			Policy:  stale.Policy{Fresh: time.Second, IfError: time.Hour},
			StaleIf: func(err error) bool { return !errors.Is(err, forbidden) },
		})
		require.NoError(t, c.Set(t.Context(), "k", "old"))
		time.Sleep(2 * time.Second)
		r, err := c.Lookup(t.Context(), "k", func(context.Context) (string, error) { return "", errDown })
		require.NoError(t, err)
		assert.Equal(t, cache.Stale, r.Outcome)
		_, err = c.Lookup(t.Context(), "k", func(context.Context) (string, error) { return "", forbidden })
		require.ErrorIs(t, err, forbidden)
	})
}

// Whoever is told at once that the store can't be reached computes, as anyone does, and gets what it computed.
func TestWithoutTheStoreWhoComputesIsTheOneWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		o.prompt = true
		o.begin(errNobody)
		f := fleetOver(t, o.Memory, cache.Options[string]{Policy: plain, Near: -1}, o)
		assert.Equal(t, cache.Computed, f.ask(0, "k").Outcome)
		r := f.askFor(t.Context(), 0, "own", func(ctx context.Context) (string, error) {
			_, err := f.compute(ctx)
			return "", errors.Join(err, cache.Own(errDown))
		})
		require.ErrorIs(t, r.err, errDown)
		assert.EqualValues(t, 2, f.runs.Load(), "an error of its own is no reason to compute again")
	})
}
