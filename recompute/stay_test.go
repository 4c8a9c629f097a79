package recompute_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

// A flight must not be abandoned between the moment a newcomer finds it and the moment the newcomer is aboard.
func TestACallerWhoStaysNeverHearsThatTheOthersHaveGone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		work := func(ctx context.Context, _ func()) (string, error) {
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(time.Second):
				return "value", nil
			}
		}
		for round := range 1000 {
			ctx, cancel := context.WithCancel(t.Context())
			f.ask(ctx, 1, "key", work)
			go cancel()
			var stay sync.WaitGroup
			for n := range 1 + round%4 { // at the same moment, or a little later
				stay.Go(func() {
					for range n {
						runtime.Gosched()
					}
					value, err := f.Do(t.Context(), "key", work)
					assert.NoError(t, err)
					assert.Equal(t, "value", value)
				})
			}
			stay.Wait()
		}
	})
}

// The same where everybody is in everybody's way.
func TestACallerWhoStaysInACrowdNeverHearsThatTheOthersHaveGone(t *testing.T) {
	tasks := recompute.NewTasks()
	g := recompute.NewGroup[string](tasks, limit)
	work := func(ctx context.Context, _ func()) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(50 * time.Microsecond):
			return "value", nil
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				leaver, cancel := context.WithCancel(t.Context())
				all.Go(func() { _, _ = g.Do(leaver, "key", work) })
				all.Go(cancel)
				if _, err := g.Do(t.Context(), "key", work); !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, tasks.Close(limit))
}
