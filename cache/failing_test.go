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
	"github.com/bellwether-cache/bellwether/stale"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Guarantee 6; cases 7 and 67.
func TestOneFailureIsOneFailureForTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := cache.NewMemory()
		replicas := make([]*cache.Cache[string], 4)
		for i := range replicas {
			c, err := cache.New[string](store, cache.Options[string]{
				Policy: stale.Policy{Fresh: time.Minute, Cooldown: 5 * time.Second},
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			replicas[i] = c
		}
		var runs atomic.Int64
		down := errors.New("the database is down")
		burst := func() {
			var callers sync.WaitGroup
			for _, c := range replicas {
				for range 25 {
					callers.Go(func() {
						_, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) {
							runs.Add(1)
							time.Sleep(200 * time.Millisecond)
							return "", down
						})
						var failed *cache.FailedError
						assert.True(t, errors.Is(err, down) || errors.As(err, &failed), "%v", err)
						assert.ErrorContains(t, err, "the database is down")
					})
				}
			}
			callers.Wait()
		}
		began := time.Now()
		burst()
		assert.EqualValues(t, 1, runs.Load(), "one run for all who waited")
		assert.Equal(t, 200*time.Millisecond, time.Since(began), "and no queue of retries")
		time.Sleep(4 * time.Second)
		burst()
		assert.EqualValues(t, 1, runs.Load(), "no attempt within the cooldown, by anybody")
		time.Sleep(2 * time.Second)
		burst()
		assert.EqualValues(t, 2, runs.Load(), "one attempt after it")
		require.NoError(t, replicas[0].Delete(t.Context(), "k"))
		burst()
		assert.EqualValues(t, 3, runs.Load(), "a deletion ends the cooldown for all")
	})
}

func TestAFailureIsNotRememberedWithoutCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := cache.New[string](cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute}})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		runs := 0
		for range 2 {
			_, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { runs++; return "", errors.New("no") })
			require.Error(t, err)
		}
		assert.Equal(t, 2, runs, "two calls one after the other are two attempts")
	})
}
