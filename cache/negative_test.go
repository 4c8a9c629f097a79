package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

func absent(context.Context) (string, error) { return "", cache.ErrNotFound }

// Case 66.
func TestNotFoundIsRememberedForItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := windows
		policy.Negative = 10 * time.Second
		f := newFleet(t, 2, cache.Options[string]{Policy: policy})
		row := ""
		query := func(ctx context.Context) (string, error) {
			_, err := f.compute(ctx)
			if row == "" {
				return "", fmt.Errorf("no such row: %w", errors.Join(err, cache.ErrNotFound))
			}
			return row, err
		}
		for range 2 {
			for _, r := range f.crowdFor(250, "k", query)() {
				require.ErrorIs(t, r.err, cache.ErrNotFound)
				require.Zero(t, r.Result)
			}
		}
		assert.EqualValues(t, 1, f.runs.Load())
		f.calls.Add(1)
		_, err := f.replicas[0].Refresh(t.Context(), "k", func(context.Context) (string, error) { return "", errDown })
		require.ErrorIs(t, err, errDown, "there is no value to stand in for it")
		row = "there"
		time.Sleep(policy.Negative - 1)
		require.ErrorIs(t, f.askFor(t.Context(), 1, "k", query).err, cache.ErrNotFound)
		time.Sleep(time.Nanosecond)
		values(t, "there", f.crowdFor(10, "k", query)())
		assert.EqualValues(t, 2, f.runs.Load(), "it is not served stale: it would hide a value that exists")

		// A deletion, a Set, end it at once.
		row = ""
		require.NoError(t, f.replicas[0].Delete(t.Context(), "k"))
		require.ErrorIs(t, f.askFor(t.Context(), 0, "k", query).err, cache.ErrNotFound)
		f.store("k", "set")
		values(t, "set", f.crowdFor(1, "k", query)())
	})
}

func TestWithoutNegativeNotFoundIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: windows})
		for range 3 {
			require.ErrorIs(t, f.askFor(t.Context(), 0, "k", func(ctx context.Context) (string, error) {
				f.enter()
				return absent(ctx)
			}).err, cache.ErrNotFound)
		}
		assert.EqualValues(t, 3, f.runs.Load())
	})
}

// What is not there any more is not served any more, though it was good for an error.
func TestNotFoundEndsAStaleValue(t *testing.T) {
	for _, negative := range []time.Duration{0, time.Second} {
		for _, age := range []time.Duration{windows.Fresh, windows.Fresh + windows.WhileRevalidate} {
			t.Run(fmt.Sprint(negative, age), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					policy := windows
					policy.Negative = negative
					f := newFleet(t, 2, cache.Options[string]{Policy: policy})
					f.store("k", "old")
					time.Sleep(age)
					r := f.askFor(t.Context(), 0, "k", absent)
					if age == windows.Fresh {
						values(t, "old", []reply{r})
					} else {
						require.ErrorIs(t, r.err, cache.ErrNotFound)
					}
					synctest.Wait()
					f.stands("k", "")
					for i := range f.replicas {
						require.ErrorIs(t, f.askFor(t.Context(), i, "k", absent).err, cache.ErrNotFound)
					}
				})
			})
		}
	}
}

// Case 67: a passing error is not stored.
func TestAPassingErrorIsNotStored(t *testing.T) {
	for _, passing := range []error{errDown, context.DeadlineExceeded, context.Canceled, fmt.Errorf("i/o: %w", context.Canceled)} {
		t.Run(passing.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 2, cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute, Negative: time.Minute}})
				r := f.askFor(t.Context(), 0, "k", func(context.Context) (string, error) { return "", passing })
				require.ErrorIs(t, r.err, passing)
				values(t, "v1", []reply{f.ask(1, "k")})
			})
		})
	}
}

// Case 67, with a cooldown: contexts that end say nothing about the source.
func TestAnEndedContextBeginsNoCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := plain
		policy.Cooldown = time.Minute
		f := newFleet(t, 2, cache.Options[string]{Policy: policy})
		r := f.askFor(t.Context(), 0, "k", func(context.Context) (string, error) { return "", context.DeadlineExceeded })
		require.ErrorIs(t, r.err, context.DeadlineExceeded)
		require.Error(t, f.askFor(t.Context(), 0, "k", func(context.Context) (string, error) { panic("!") }).err)
		g := join(f, 0, 1, f.compute)
		g[0].leave()
		require.ErrorIs(t, wait(g...)[0].err, context.Canceled)
		values(t, "v2", []reply{f.ask(0, "k")})
	})
}

// Case 66: many absent keys, not for ever.
func TestAbsentKeysTakeNoMemoryForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := plain
		policy.Negative = time.Second
		f := newFleet(t, 1, cache.Options[string]{Policy: policy, Limit: time.Second})
		const keys, rate = 15_000, 200
		most := 0
		for i := range keys {
			_, err := f.replicas[0].GetOrCompute(t.Context(), fmt.Sprint("k", i), absent)
			if !errors.Is(err, cache.ErrNotFound) {
				t.Fatal(err)
			}
			if i%rate == 0 {
				time.Sleep(time.Second)
				most = max(most, f.memory.Names())
			}
		}
		f.calls.Add(keys)
		assert.Less(t, most, 5_000, "that many a second, remembered for less than ten")
		assert.Zero(t, f.replicas[0].Failing())
	})
}

// Whoever is told that there is nothing for them alone has not learnt that there is nothing.
func TestANotFoundOfTheCallersOwnIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute, Negative: time.Minute}})
		r := f.askFor(t.Context(), 0, "k", func(context.Context) (string, error) { return "", cache.Own(cache.ErrNotFound) })
		require.ErrorIs(t, r.err, cache.ErrNotFound)
		require.NoError(t, f.ask(0, "k").err)
	})
}
