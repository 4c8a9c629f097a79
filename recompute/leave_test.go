package recompute_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

// cause returns the cause with which the work's context ended, once it has.
func (f *flock) cause(into *error) recompute.Work[string] {
	return func(ctx context.Context, seal func()) (string, error) {
		value, err := f.work(ctx, seal)
		*into = context.Cause(ctx)
		return value, err
	}
}

func TestACallerLeavesWhenItsOwnContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		hasty, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("for a reason"))
		defer cancel()
		patient := f.ask(t.Context(), 1, "key", f.work)
		leavers := f.ask(hasty, 100, "key", f.work)
		time.Sleep(time.Second)
		require.Len(t, leavers, 100)
		for range 100 {
			r := <-leavers
			assert.Equal(t, context.DeadlineExceeded, r.err, "its own error, as it is")
			assert.Equal(t, 100*time.Millisecond, r.took)
		}
		close(f.gate)
		f.all(1, patient, "run 1", nil)
	})
}

func TestALeadersEndNeitherFailsNorRestartsTheOthers(t *testing.T) {
	for name, end := range map[string]struct {
		leader func(context.Context) (context.Context, context.CancelFunc)
		err    error
	}{
		"cancelled": {context.WithCancel, context.Canceled},
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*time.Millisecond)
		}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *flock) {
				ctx, cancel := end.leader(t.Context())
				defer cancel()
				leader := f.ask(ctx, 1, "key", f.work)
				followers := f.ask(t.Context(), 50, "key", f.work)
				if end.err == context.Canceled {
					cancel()
				}
				<-ctx.Done()
				f.all(1, leader, "", end.err)
				require.Empty(t, followers)
				time.Sleep(time.Second)
				close(f.gate)
				f.all(50, followers, "run 1", nil)
				assert.EqualValues(t, 1, f.runs.Load())
			})
		})
	}
}

func TestWorkThatNobodyWantsAnyMoreIsAbandoned(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		var cause error
		first, leave := context.WithCancel(t.Context())
		second, leaveToo := context.WithCancel(t.Context())
		results := f.ask(first, 5, "key", f.cause(&cause))
		others := f.ask(second, 5, "key", f.work)
		leave()
		f.all(5, results, "", context.Canceled)
		require.Equal(t, 1, f.InFlight(), "the others still wait")
		leaveToo()
		f.all(5, others, "", context.Canceled)
		assert.Equal(t, recompute.ErrAbandoned, cause)
		assert.Zero(t, f.InFlight())
	})
}

func TestWhoeverComesAfterAnAbandonedFlightStartsAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		stuck := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		abandoned := f.ask(ctx, 5, "key", func(context.Context, func()) (string, error) {
			<-stuck // whatever its context says
			return "late", nil
		})
		flight := f.Find("key")
		cancel()
		f.all(5, abandoned, "", context.Canceled)
		close(f.gate)
		f.all(1, f.ask(t.Context(), 1, "key", f.work), "run 1", nil)

		_, err := flight.Wait(t.Context())
		require.ErrorIs(t, err, recompute.ErrAbandoned, "for one who had found it before")
		close(stuck)
	})
}

// A caller whose time is up would still like the value to be there when it asks again; one that cancelled would not.
func TestAFlightIsOwedToThoseWhoRanOutOfTime(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		var cause error
		hasty, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		quitting, quit := context.WithCancel(t.Context())
		late := f.ask(hasty, 1, "key", f.cause(&cause))
		quitters := f.ask(quitting, 1, "key", f.work)
		time.Sleep(time.Second)
		f.all(1, late, "", context.DeadlineExceeded)
		quit()
		f.all(1, quitters, "", context.Canceled)
		require.Equal(t, 1, f.InFlight())
		require.True(t, f.Find("key").Owed())

		again := f.ask(t.Context(), 1, "key", f.work)
		close(f.gate)
		f.all(1, again, "run 1", nil)
		assert.NoError(t, cause)
	})
}

func TestAContextThatHasEndedStartsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f.all(1, f.ask(ctx, 1, "key", f.work), "", context.Canceled)
		assert.Zero(t, f.runs.Load())
		results := f.ask(t.Context(), 1, "key", f.work)
		f.all(1, f.ask(ctx, 1, "key", f.work), "", context.Canceled)
		require.Equal(t, 1, f.InFlight(), "nor does it end what is in the air")
		close(f.gate)
		f.all(1, results, "run 1", nil)
	})
}

func TestWorkEndsAtItsLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		var cause error
		results := f.ask(t.Context(), 10, "key", f.cause(&cause))
		began := time.Now()
		time.Sleep(limit)
		f.all(10, results, "", recompute.ErrLimit)
		assert.Equal(t, recompute.ErrLimit, cause)
		assert.Equal(t, limit, time.Since(began))
	})
}

func TestWorkThatIgnoresItsContextHoldsNobodyBeyondTheLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		stuck := make(chan struct{})
		results := f.ask(t.Context(), 10, "key", func(context.Context, func()) (string, error) {
			<-stuck
			return "late", nil
		})
		time.Sleep(limit)
		f.all(10, results, "", recompute.ErrLimit)
		assert.Equal(t, limit, f.tasks.Oldest(), "it can be seen")
		close(f.gate)
		f.all(1, f.ask(t.Context(), 1, "key", f.work), "run 1", nil)
		close(stuck)
		synctest.Wait()
		f.all(1, f.ask(t.Context(), 1, "key", f.work), "run 2", nil)
	})
}

func TestAnErrorOfTheWorkIsNotBlamedOnItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		_, err := f.Do(t.Context(), "key", func(context.Context, func()) (string, error) {
			return "", context.DeadlineExceeded // of some context of its own
		})
		require.Equal(t, context.DeadlineExceeded, err)
	})
}

func TestCloseEndsWhatIsInTheAir(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		var cause error
		results := f.ask(t.Context(), 10, "key", f.cause(&cause))
		require.NoError(t, f.Go(t.Context(), "owed", nil, f.work))
		require.NoError(t, f.tasks.Close(time.Second))
		assert.Equal(t, recompute.ErrClosed, cause)
		f.all(10, results, "", recompute.ErrClosed)
		f.all(1, f.ask(t.Context(), 1, "key", f.work), "", recompute.ErrClosed)
		require.ErrorIs(t, f.Go(t.Context(), "key", nil, f.work), recompute.ErrClosed)
		assert.EqualValues(t, 2, f.runs.Load())
	})
}

func TestCloseWaitsForWorkThatWindsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		done := false
		results := f.ask(t.Context(), 1, "key", func(ctx context.Context, seal func()) (string, error) {
			_, err := f.work(ctx, seal)
			time.Sleep(300 * time.Millisecond)
			done = true
			return "", err
		})
		began := time.Now()
		require.NoError(t, f.tasks.Close(time.Second))
		assert.Equal(t, 300*time.Millisecond, time.Since(began))
		assert.True(t, done)
		f.all(1, results, "", recompute.ErrClosed)
	})
}
