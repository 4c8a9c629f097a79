package cachetest_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/cachetest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/recomputetest"
	"github.com/bellwether-cache/bellwether/stale"
)

func TestWithoutFaultsTheContractIsKept(t *testing.T) {
	t.Run("store", func(t *testing.T) {
		cachetest.TestStore(t, synctest.Test, func(*testing.T) cache.Store {
			return cachetest.NewChaos(cache.NewMemory(), cachetest.ChaosOptions{})
		})
	})
	t.Run("calmed store", func(t *testing.T) {
		cachetest.TestStore(t, synctest.Test, func(*testing.T) cache.Store {
			c := cachetest.NewChaos(cache.NewMemory(), everything)
			c.Calm()
			return c
		})
	})
	t.Run("locker", func(t *testing.T) {
		recomputetest.TestLocker(t, synctest.Test, func(*testing.T) recompute.Locker {
			return cachetest.NewChaos(nil, cachetest.ChaosOptions{}).Around(new(recompute.Local))
		})
	})
}

// A store that is only that stays that.
func TestAPlainStoreGetsNoMoreThanItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cachetest.NewChaos(struct{ cache.Store }{cache.NewMemory()}, cachetest.ChaosOptions{})
		_, err := c.GetPromptly(t.Context(), key)
		require.Error(t, err)
		require.NotErrorIs(t, err, cache.ErrNotFound)
		heard := listen(t, c)
		require.NoError(t, c.Delete(t.Context(), 0, key.Name))
		require.Empty(t, heard())
		_, err = c.Locker().Acquire(t.Context(), key.Name, long)
		require.NoError(t, err)
		_, err = c.Locker().Acquire(t.Context(), key.Name, long)
		require.ErrorIs(t, err, recompute.ErrHeld)
	})
}

func TestACacheIsToldWhatCantWork(t *testing.T) {
	for _, o := range []cachetest.ChaosOptions{{Refuse: -.1}, {Steal: 1.5}, {Cut: math.NaN()}, {Longest: -1}} {
		_, err := cache.New[string](cachetest.NewChaos(cache.NewMemory(), o), cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute}})
		require.ErrorContains(t, err, "ChaosOptions")
	}
	_, err := cache.New[string](cachetest.NewChaos(nil, cachetest.ChaosOptions{}), cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute}})
	require.ErrorContains(t, err, "is nil")
}
