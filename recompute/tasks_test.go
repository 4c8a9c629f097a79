package recompute_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

func TestNothingIsStartedAfterClose(t *testing.T) {
	tasks := recompute.NewTasks()
	require.NoError(t, tasks.Close(0))
	require.Equal(t, recompute.ErrClosed, tasks.Go(func(context.Context) { t.Error("started") }))
	_, err := recompute.Call(t.Context(), tasks, func(context.Context) (int, error) { t.Error("called"); return 0, nil })
	require.Equal(t, recompute.ErrClosed, err)
	require.NoError(t, tasks.Close(0), "closing again is harmless")
}

func TestCloseEndsTheContextOfWhatRunsAndWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		var cause error
		require.NoError(t, tasks.Go(func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second)
			cause = context.Cause(ctx)
		}))
		began := time.Now()
		require.NoError(t, tasks.Close(time.Minute))
		assert.Equal(t, time.Second, time.Since(began))
		assert.Equal(t, recompute.ErrClosed, cause)
	})
}

func TestCloseIsNotMorePatientThanToldAndSaysHowManyAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		stuck := make(chan struct{})
		for range 3 {
			require.NoError(t, tasks.Go(func(context.Context) { <-stuck }))
		}
		g := recompute.NewGroup[int](tasks, limit)
		require.NoError(t, g.Go(t.Context(), "key", nil, func(context.Context, func()) (int, error) { <-stuck; return 0, nil }))
		for range 2 {
			began := time.Now()
			require.ErrorContains(t, tasks.Close(time.Second), "4 goroutines still run")
			assert.Equal(t, time.Second, time.Since(began))
		}
		close(stuck)
		synctest.Wait()
		require.NoError(t, tasks.Close(0))
	})
}

func TestSeveralMayCloseTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		require.NoError(t, tasks.Go(func(ctx context.Context) { <-ctx.Done(); time.Sleep(time.Second) }))
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { assert.NoError(t, tasks.Close(time.Minute)) })
		}
		all.Wait()
	})
}

// sync.WaitGroup would have it a race to add a goroutine while Close waits.
func TestWhatIsStartedWhileClosingIsEitherRefusedOrWaitedFor(t *testing.T) {
	for range 200 {
		tasks := recompute.NewTasks()
		var running, refused atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for tasks.Go(func(context.Context) { running.Add(1); runtime.Gosched(); running.Add(-1) }) == nil {
					_, _ = recompute.Call(context.Background(), tasks, func(context.Context) (int, error) {
						running.Add(1)
						defer running.Add(-1)
						return 0, nil
					})
				}
				refused.Add(1)
			})
		}
		runtime.Gosched()
		if !assert.NoError(t, tasks.Close(time.Minute)) || !assert.Zero(t, running.Load(), "goroutines after Close") {
			break
		}
		all.Wait()
		assert.EqualValues(t, 8, refused.Load())
	}
}

func TestAFlightThatWindsDownMayStillCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		require.NoError(t, tasks.Go(func(ctx context.Context) {
			<-ctx.Done()
			v, err := recompute.Call(context.WithoutCancel(ctx), tasks, func(context.Context) (int, error) {
				time.Sleep(time.Second)
				return 42, nil
			})
			assert.NoError(t, err)
			assert.Equal(t, 42, v)
		}))
		began := time.Now()
		require.NoError(t, tasks.Close(time.Minute))
		assert.Equal(t, time.Second, time.Since(began))
	})
}

func TestAPanicOrGoexitOfATaskEndsThatTaskOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		require.NoError(t, tasks.Go(func(context.Context) { panic("boom") }))
		require.NoError(t, tasks.Go(func(context.Context) { runtime.Goexit() }))
		synctest.Wait()
		require.NoError(t, tasks.Close(0))
	})
}

func TestOldestIsTheAgeOfTheOldestCallThatStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		require.NoError(t, tasks.Go(func(ctx context.Context) { <-ctx.Done() })) // is no call
		lasting := func(d time.Duration) {
			go func() {
				_, _ = recompute.Call(t.Context(), tasks, func(context.Context) (int, error) { time.Sleep(d); return 0, nil })
			}()
			synctest.Wait()
		}
		assert.Zero(t, tasks.Oldest())
		lasting(10 * time.Second)
		time.Sleep(3 * time.Second)
		lasting(20 * time.Second)
		time.Sleep(2 * time.Second)
		assert.Equal(t, 5*time.Second, tasks.Oldest())
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, 7*time.Second, tasks.Oldest(), "the first is over")
		time.Sleep(time.Minute)
		assert.Zero(t, tasks.Oldest())
		require.NoError(t, tasks.Close(time.Second))
	})
}

func TestACallThatMayLastDoesNotCountForOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		go func() {
			_, _ = recompute.Call(t.Context(), tasks, func(ctx context.Context) (int, error) {
				time.Sleep(time.Minute)
				recompute.Overlook(ctx)
				time.Sleep(time.Hour)
				return 0, nil
			})
		}()
		synctest.Wait()
		time.Sleep(time.Minute - 1)
		assert.Equal(t, time.Minute-1, tasks.Oldest())
		time.Sleep(time.Minute)
		assert.Zero(t, tasks.Oldest())
		require.Error(t, tasks.Close(time.Second), "it still runs, and is waited for")
		time.Sleep(time.Hour)
		recompute.Overlook(t.Context()) // of no call: nothing happens
		require.NoError(t, tasks.Close(0))
	})
}

func TestWithoutAnOwnerGoroutinesAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nobody *recompute.Tasks
		done := false
		require.NoError(t, nobody.Go(func(ctx context.Context) { done = ctx.Err() == nil }))
		synctest.Wait()
		assert.True(t, done)
	})
}
