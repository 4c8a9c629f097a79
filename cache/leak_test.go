package cache_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

// Guarantee 17; case 108: what was asked for leaves no trace in the process.
func TestKeysLeaveNothingBehind(t *testing.T) {
	keys := 100_000
	if underRace { // which makes each one take ten times as long
		keys /= 10
	}
	m := cache.NewMemory()
	c, err := cache.New(m, cache.Options[int]{Policy: stale.Policy{Fresh: time.Millisecond}})
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := w; i < keys; i += 8 {
				_, err := c.GetOrCompute(t.Context(), fmt.Sprint("k", i), func(context.Context) (int, error) {
					if i%10 == 0 {
						return 0, errDown
					}
					return i, nil
				})
				if i%10 != 0 && err != nil {
					assert.NoError(t, err)
					return
				}
			}
		})
	}
	all.Wait()
	busy := func() bool {
		return c.InFlight()+c.Waiting()+c.Reading() > 0 || runtime.NumGoroutine() > before+1
	}
	for end := time.Now().Add(5 * time.Second); busy() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	assert.Zero(t, c.InFlight(), "flights")
	assert.Zero(t, c.Waiting(), "names on the board")
	assert.Zero(t, c.Reading(), "reads")
	assert.LessOrEqual(t, runtime.NumGoroutine(), before+1)
	require.NoError(t, c.Close())
}

func TestFailuresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain})
		most := 0
		for i := range 10_000 {
			_, err := f.replicas[0].GetOrCompute(t.Context(), fmt.Sprint("k", i), func(context.Context) (string, error) { return "", errDown })
			if err == nil {
				t.Fatal("it fails")
			}
			if i%10 == 0 {
				time.Sleep(100 * time.Millisecond)
				most = max(most, f.replicas[0].Failing())
			}
		}
		f.calls.Add(10_000)
		assert.LessOrEqual(t, most, 2*1024, "a hundred a second are paused for a second each")
	})
}

// Memory drops what has run out, though nobody asks for it, and nothing else.
func TestMemoryDropsWhatHasRunOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		put := func(name string, ttl time.Duration) {
			key := cache.Key{Name: name, Schema: "00000000000000a1"}
			fence, _, err := m.Begin(t.Context(), key, 0, time.Second)
			require.NoError(t, err)
			require.NoError(t, m.Set(t.Context(), key, cache.Write{Data: []byte("v"), Fence: fence, TTL: ttl}))
		}
		put("stays", time.Hour)
		most := 0
		for i := range 50_000 {
			put(fmt.Sprint("k", i), time.Second)
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
			most = max(most, m.Names())
		}
		assert.LessOrEqual(t, most, 2*1024)
		_, err := m.Get(t.Context(), cache.Key{Name: "stays", Schema: "00000000000000a1"})
		require.NoError(t, err)
	})
}

// An entry that has run out is dropped, but not the number under which it was written, as long as that matters.
func TestMemoryDoesNotForgetAHigherWriteTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		key := func(name string) cache.Key { return cache.Key{Name: name, Schema: "00000000000000a1"} }
		begin := func(name string) cache.Fence {
			fence, _, err := m.Begin(t.Context(), key(name), 0, time.Hour)
			require.NoError(t, err)
			return fence
		}
		lower, higher := begin("k"), begin("k")
		brief := cache.Write{Data: []byte("higher"), Fence: higher, TTL: time.Second}
		require.NoError(t, m.Set(t.Context(), key("k"), brief))
		time.Sleep(time.Minute)
		for i := range 10_000 { // enough to have it clean up
			name := fmt.Sprint("k", i)
			require.NoError(t, m.Set(t.Context(), key(name), cache.Write{Data: []byte("v"), Fence: begin(name), TTL: time.Second}))
		}
		late := cache.Write{Data: []byte("lower"), Fence: lower, TTL: time.Minute}
		require.ErrorIs(t, m.Set(t.Context(), key("k"), late), cache.ErrFenced)
	})
}
