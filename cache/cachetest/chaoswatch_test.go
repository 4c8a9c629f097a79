package cachetest_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/cachetest"
)

// listen collects the kinds of the events that c tells of. Read them in a quiet bubble.
func listen(t *testing.T, c *cachetest.Chaos) (heard func() []cache.EventKind) {
	t.Helper()
	var mu sync.Mutex
	var kinds []cache.EventKind
	go c.Watch(t.Context(), func(e cache.Event) {
		mu.Lock()
		defer mu.Unlock()
		kinds = append(kinds, e.Kind)
	})
	synctest.Wait()
	return func() []cache.EventKind {
		mu.Lock()
		defer mu.Unlock()
		got := kinds
		kinds = nil
		return got
	}
}

func TestAMutedEventIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(t, cachetest.ChaosOptions{Mute: 1})
		heard := listen(t, s.chaos)
		require.NoError(t, s.chaos.Delete(s.ctx, 0, "a", "b"))
		assert.Equal(t, []cache.EventKind{cache.Connected}, heard())
		assert.Equal(t, 2, s.chaos.Count(cachetest.Muted))
		s.chaos.Calm()
		require.NoError(t, s.chaos.Delete(s.ctx, 0, "a"))
		assert.Equal(t, []cache.EventKind{cache.Deleted}, heard())
	})
}

func TestAWatcherThatIsCutOffIsConnectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(t, cachetest.ChaosOptions{Cut: 1, Outage: time.Hour})
		heard := listen(t, s.chaos)
		deleted := func() { require.NoError(t, s.chaos.Delete(s.ctx, 0, "a")) }
		deleted()
		deleted()
		assert.Equal(t, []cache.EventKind{cache.Connected, cache.Disconnected}, heard())
		assert.Equal(t, 1, s.chaos.Count(cachetest.WatchCut))
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, []cache.EventKind{cache.Connected}, heard())
		deleted()
		s.chaos.Calm()
		deleted()
		assert.Equal(t, []cache.EventKind{cache.Disconnected, cache.Connected, cache.Deleted}, heard())
	})
}
