package recompute_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

func TestACallReturnsWhatItsFunctionReturns(t *testing.T) {
	broken := errors.New("broken")
	v, err := recompute.Call(t.Context(), nil, func(context.Context) (int, error) { return 42, broken })
	assert.Equal(t, 42, v)
	assert.Equal(t, broken, err)
}

func TestACallReturnsWhenItsContextEndsWhateverItsFunctionDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		began := time.Now()
		v, err := recompute.Call(ctx, tasks, func(context.Context) (int, error) { time.Sleep(time.Hour); return 42, nil })
		assert.Equal(t, enough, err, "the cause, not only that it ended")
		assert.Zero(t, v)
		assert.Equal(t, time.Second, time.Since(began))
		require.ErrorContains(t, tasks.Close(0), "1 goroutines", "it goes on by itself, and is counted")
		require.NoError(t, tasks.Close(time.Hour))
	})
}

func TestACallContainsPanicAndGoexit(t *testing.T) {
	_, err := recompute.Call(t.Context(), nil, func(context.Context) (int, error) { panic("boom") })
	p, ok := errors.AsType[*recompute.PanicError](err)
	require.True(t, ok)
	assert.Equal(t, "boom", p.Value)
	require.NoError(t, p.Unwrap(), "which was no error")

	_, err = recompute.Call(t.Context(), nil, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
	require.Equal(t, recompute.ErrGoexit, err)
}
