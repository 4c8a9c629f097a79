package recompute_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/stretchr/testify/require"
)

type cutKey struct{}

func TestAContextEndsWithTheOneItIsOfUntilItIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("why")
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), cutKey{}, "value"))
		limited, stop := context.WithTimeout(parent, time.Minute)
		defer stop()
		tasks := recompute.NewTasks()

		tied, _, end := recompute.Cut(limited, tasks)
		defer end()
		free, cut, over := recompute.Cut(limited, tasks)
		defer over()
		child, done := context.WithCancel(free)
		defer done()
		deadline, ok := free.Deadline()
		require.True(t, ok)
		require.Equal(t, time.Now().Add(time.Minute), deadline)

		require.True(t, cut())
		_, ok = free.Deadline()
		require.False(t, ok)
		cancel(why)
		synctest.Wait()
		require.ErrorIs(t, context.Cause(tied), why)
		require.NoError(t, free.Err())
		require.NoError(t, child.Err())
		require.Equal(t, "value", child.Value(cutKey{}))

		require.NoError(t, tasks.Close(0))
		synctest.Wait()
		require.ErrorIs(t, context.Cause(free), recompute.ErrClosed)
		require.ErrorIs(t, context.Cause(child), recompute.ErrClosed)
	})
}

func TestAContextThatHasEndedCannotBeCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(t.Context())
		free, cut, end := recompute.Cut(parent, recompute.NewTasks())
		cancel()
		synctest.Wait()
		require.False(t, cut())
		require.Error(t, free.Err())
		end()
	})
}
