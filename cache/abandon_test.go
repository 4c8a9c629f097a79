package cache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

// Guarantee 7, at its narrowest: the last caller of a computation cancels in the moment in which another one comes.
// That one never gets the other's cancellation.
func TestWhoeverComesWhenTheLastLeavesGetsAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		for range 1000 {
			g := join(f, 0, 1, f.compute)
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					r := f.ask(i%2, "k")
					assert.NoError(t, r.err)
				})
				if i == 1 {
					all.Go(g[0].leave)
				}
			}
			all.Wait()
			wait(g...)
			require.NoError(t, f.replicas[0].Delete(t.Context(), "k"))
		}
	})
}

// Any of many may come and leave at any time; who stays gets a value, and nothing is left of the others.
func TestComingsAndGoings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, cache.Options[string]{Policy: windows})
		f.takes = 7 * time.Millisecond
		var all sync.WaitGroup
		for i := range 600 {
			all.Go(func() {
				time.Sleep(time.Duration(i%97) * time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%3 > 0 {
					time.AfterFunc(time.Duration(i%11)*time.Millisecond, cancel)
				}
				r := f.askFor(ctx, i%3, string(rune('a'+i%5)), f.compute)
				if r.err != nil {
					assert.ErrorIs(t, r.err, context.Canceled)
					assert.Error(t, ctx.Err(), "it did not leave by itself")
				}
				if i%50 == 0 {
					assert.NoError(t, f.replicas[i%3].Delete(t.Context(), string(rune('a'+i%5))))
				}
			})
		}
		all.Wait()
	})
}
