package cache_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

type largeError struct{ body []byte }

func (e *largeError) Error() string { return "large" }

// Each key that has failed is remembered for a while, and an error may be as large as a page.
func TestAnErrorIsNotKeptOnceNobodyGetsItAnyMore(t *testing.T) {
	c, err := cache.New(cache.NewMemory(), cache.Options[string]{Policy: plain})
	require.NoError(t, err)
	defer c.Close()
	gone := make(chan struct{})
	_, err = c.Lookup(t.Context(), "k", func(context.Context) (string, error) {
		e := &largeError{body: make([]byte, 1<<20)}
		runtime.AddCleanup(e, func(struct{}) { close(gone) }, struct{}{})
		return "", e
	})
	require.ErrorContains(t, err, "large")
	err = nil
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}, 5*time.Second, 10*time.Millisecond)
}
