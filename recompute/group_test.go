package recompute_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

const limit = 10 * time.Second

// flock is a group whose work stops at a gate that the test opens.
type flock struct {
	*recompute.Group[string]
	t     *testing.T
	tasks *recompute.Tasks
	gate  chan struct{}
	runs  atomic.Int64
}

// inBubble runs a test on a flock in a bubble, and looks afterwards whether anything was left.
func inBubble(t *testing.T, test func(t *testing.T, f *flock)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tasks := recompute.NewTasks()
		f := &flock{Group: recompute.NewGroup[string](tasks, limit), t: t, tasks: tasks, gate: make(chan struct{})}
		test(t, f)
		synctest.Wait()
		assert.Zero(t, f.InFlight(), "flights left")
		assert.Zero(t, tasks.Oldest(), "calls left")
		require.NoError(t, tasks.Close(0), "goroutines left")
	})
}

// work returns the number of its run once the gate is open, or when its context ends, that context's error.
func (f *flock) work(ctx context.Context, _ func()) (string, error) {
	n := f.runs.Add(1)
	select {
	case <-f.gate:
		return "run " + strconv.FormatInt(n, 10), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// result is what a caller was given.
type result struct {
	value string
	err   error
	took  time.Duration
}

// ask has k callers ask for key, all under ctx, and returns when they wait. Their results come later.
func (f *flock) ask(ctx context.Context, k int, key string, work recompute.Work[string]) <-chan result {
	results := make(chan result, k)
	began := time.Now()
	for range k {
		go func() {
			value, err := f.Do(ctx, key, work)
			results <- result{value, err, time.Since(began)}
		}()
	}
	synctest.Wait()
	return results
}

// all asserts that k callers were given the value, or the error if that is not nil.
func (f *flock) all(k int, results <-chan result, value string, err error) {
	f.t.Helper()
	synctest.Wait()
	require.Len(f.t, results, k, "callers who have an answer")
	for range k {
		r := <-results
		require.ErrorIs(f.t, r.err, err)
		require.Equal(f.t, value, r.value)
	}
}

func TestCallersWhoAskWhileAFlightIsInTheAirShareOneRun(t *testing.T) {
	for _, k := range []int{1, 10, 100, 1000} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *flock) {
				results := f.ask(t.Context(), k, "key", f.work)
				require.Empty(t, results, "all wait at the gate")
				require.Equal(t, 1, f.InFlight())
				close(f.gate)
				f.all(k, results, "run 1", nil)
				assert.EqualValues(t, 1, f.runs.Load())
			})
		})
	}
}

func TestKeysAndGroupsHaveFlightsOfTheirOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		other := recompute.NewGroup[string](f.tasks, limit)
		go func() { _, _ = other.Do(t.Context(), "a", f.work) }()
		a := f.ask(t.Context(), 5, "a", f.work)
		b := f.ask(t.Context(), 5, "", f.work)
		assert.Equal(t, 2, f.InFlight())
		close(f.gate)
		synctest.Wait()
		assert.EqualValues(t, 3, f.runs.Load())
		assert.NotEqual(t, (<-a).value, (<-b).value)
	})
}

func TestOneFailureIsOneFailureForAllWhoWait(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		broken := errors.New("broken")
		results := f.ask(t.Context(), 20, "key", func(ctx context.Context, seal func()) (string, error) {
			f.runs.Add(1)
			time.Sleep(200 * time.Millisecond)
			return "", broken
		})
		time.Sleep(200 * time.Millisecond)
		f.all(20, results, "", broken)
		assert.EqualValues(t, 1, f.runs.Load())
	})
}

func TestACallAfterAFailureStartsAFlightOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		for n := range 3 {
			_, err := f.Do(t.Context(), "key", func(context.Context, func()) (string, error) {
				return "", fmt.Errorf("failure %d", n)
			})
			require.EqualError(t, err, fmt.Sprintf("failure %d", n))
		}
	})
}

func TestAFlightCarriesTheValuesOfItsFirstCallerAndANoteToTheOthers(t *testing.T) {
	type name struct{}
	inBubble(t, func(t *testing.T, f *flock) {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), name{}, "first"), time.Hour)
		defer cancel()
		first, err := f.Start(ctx, "key", "note", func(ctx context.Context, seal func()) (string, error) {
			deadline, _ := ctx.Deadline()
			assert.WithinDuration(t, time.Now().Add(limit), deadline, 0, "the flight's own limit, not the caller's deadline")
			<-f.gate
			return ctx.Value(name{}).(string), nil
		})
		require.NoError(t, err)
		second, err := f.Start(t.Context(), "key", "other note", f.work)
		require.NoError(t, err)
		assert.Same(t, first, second)
		assert.Same(t, first, f.Find("key"))
		assert.Nil(t, f.Find("other key"))
		assert.Equal(t, "note", second.Note)
		close(f.gate)
		value, err := second.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "first", value)
	})
}

func TestWhoeverComesLateForAFinishedFlightGetsItsResult(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		flight, err := f.Start(t.Context(), "key", nil, f.work)
		require.NoError(t, err)
		close(f.gate)
		synctest.Wait()
		require.Zero(t, f.InFlight())
		for range 2 {
			value, err := flight.Wait(t.Context())
			require.NoError(t, err)
			assert.Equal(t, "run 1", value)
		}
		assert.EqualValues(t, 1, f.runs.Load())
	})
}

func TestANilResultOfAnInterfaceTypeIsAResult(t *testing.T) {
	tasks := recompute.NewTasks()
	value, err := recompute.NewGroup[fmt.Stringer](tasks, limit).Do(t.Context(), "key",
		func(context.Context, func()) (fmt.Stringer, error) { return nil, nil })
	require.NoError(t, err)
	assert.Nil(t, value)
	require.NoError(t, tasks.Close(limit))
}

// Those who come after seal or Forget start a flight of their own, those who are aboard stay.
func TestNewcomersDoNotJoinAFlightThatIsClosedToThem(t *testing.T) {
	for name, shut := range map[string]func(f *flock, seal func()){
		"sealed":    func(_ *flock, seal func()) { seal() },
		"forgotten": func(f *flock, _ func()) { f.Forget("key") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *flock) {
				seals := make(chan func(), 2)
				work := func(ctx context.Context, seal func()) (string, error) {
					seals <- seal
					return f.work(ctx, seal)
				}
				aboard := f.ask(t.Context(), 3, "key", work)
				seal := <-seals
				shut(f, seal)
				require.Zero(t, f.InFlight())
				newcomers := f.ask(t.Context(), 3, "key", work)
				require.EqualValues(t, 2, f.runs.Load())
				seal() // again: it must not close the successor
				require.Equal(t, 1, f.InFlight())
				close(f.gate)
				f.all(3, aboard, "run 1", nil)
				f.all(3, newcomers, "run 2", nil)
			})
		})
	}
}

func TestGoStartsAFlightForNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, f.Go(ctx, "key", nil, f.work))
		require.NoError(t, f.Go(ctx, "key", nil, f.work), "one is in the air")
		cancel()
		results := f.ask(t.Context(), 3, "key", f.work)
		require.True(t, f.Find("key").Owed())
		close(f.gate)
		f.all(3, results, "run 1", nil)
	})
}

func TestGoKeepsAFlightAliveThatOthersAbandon(t *testing.T) {
	inBubble(t, func(t *testing.T, f *flock) {
		ctx, cancel := context.WithCancel(t.Context())
		results := f.ask(ctx, 3, "key", f.work)
		require.False(t, f.Find("key").Owed())
		require.NoError(t, f.Go(t.Context(), "key", nil, f.work))
		cancel()
		f.all(3, results, "", context.Canceled)
		assert.Equal(t, 1, f.InFlight())
		close(f.gate)
	})
}
