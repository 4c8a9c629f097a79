package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// withFallback returns a fleet whose fallback answers with its key, and the causes it was given.
func withFallback(t *testing.T, o cache.Options[string]) (*fleet, *[]error) {
	causes := new([]error)
	o.Fallback = func(_ context.Context, key string, cause error) (string, error) {
		*causes = append(*causes, cause)
		return "instead of " + key, nil
	}
	return newFleet(t, 1, o), causes
}

func TestTheFallbackAnswersInPlaceOfAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, causes := withFallback(t, cache.Options[string]{Policy: plain, Wait: time.Second, Limit: 2 * time.Second})
		f.down.Store(true)
		r := f.ask(0, "k")
		values(t, "instead of k", []reply{r})
		assert.Equal(t, cache.FellBack, r.Outcome)
		assert.Zero(t, r.Age)
		f.stands("k", "") // it is not stored

		require.NoError(t, f.askFor(t.Context(), 0, "panics", func(context.Context) (string, error) { panic("!") }).err)
		require.NoError(t, f.askFor(t.Context(), 0, "slow", func(ctx context.Context) (string, error) {
			return "", pause(ctx, 10*time.Second)
		}).err)
		require.Len(t, *causes, 3)
		assert.ErrorIs(t, (*causes)[0], errDown)
		var panicked *recompute.PanicError
		assert.ErrorAs(t, (*causes)[1], &panicked)
		assert.ErrorIs(t, (*causes)[2], recompute.ErrBusy)
		time.Sleep(2 * time.Second)
	})
}

func TestAStaleValueComesBeforeTheFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, causes := withFallback(t, cache.Options[string]{Policy: windows})
		f.store("k", "old")
		f.down.Store(true)
		for _, d := range []time.Duration{windows.Fresh, windows.WhileRevalidate} {
			time.Sleep(d)
			r := f.ask(0, "k")
			values(t, "old", []reply{r})
			require.Equal(t, cache.Stale, r.Outcome)
		}
		assert.Empty(t, *causes)
		time.Sleep(windows.IfError)
		values(t, "instead of k", []reply{f.ask(0, "k")})
	})
}

// The negative answer is an answer; who has gone needs none; a closed cache has none.
func TestTheFallbackIsNotAskedWhenThereIsAnAnswerOrNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, causes := withFallback(t, cache.Options[string]{Policy: plain})
		require.ErrorIs(t, f.askFor(t.Context(), 0, "k", absent).err, cache.ErrNotFound)
		g := join(f, 0, 1, f.compute)
		g[0].leave()
		require.ErrorIs(t, wait(g...)[0].err, context.Canceled)
		brief, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, f.askFor(brief, 0, "k", f.compute).err, context.DeadlineExceeded)
		g = join(f, 0, 1, f.gated(nil))
		require.NoError(t, f.replicas[0].Close())
		require.ErrorIs(t, wait(g...)[0].err, cache.ErrClosed)
		assert.Empty(t, *causes)
	})
}

func TestTheFallbacksErrorIsTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worse := errors.New("the other database is down, too")
		f := newFleet(t, 1, cache.Options[string]{Policy: plain, Fallback: func(_ context.Context, _ string, cause error) (string, error) {
			return "half", errors.Join(cause, worse)
		}})
		f.down.Store(true)
		r := f.ask(0, "k")
		require.ErrorIs(t, r.err, errDown)
		require.ErrorIs(t, r.err, worse)
		require.Zero(t, r.Result)
	})
}
