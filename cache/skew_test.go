package cache_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// Guarantee 20: ages are the store's. One that lies in the future is not fresh for ever: it is as good as one whose
// freshness has just ended.
func TestAnEntryFromTheFutureIsNotFreshForEver(t *testing.T) {
	for _, skew := range []time.Duration{-time.Nanosecond, -time.Hour, -1000 * time.Hour, -1 << 62} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := cache.NewMemory()
				store := &shim{Memory: m}
				f := fleetOver(t, m, cache.Options[string]{Policy: windows}, store, store)
				f.store("k", "future")
				spoiler(f, store)(func(e cache.Entry) cache.Entry { e.Age += skew; return e })
				r := f.ask(0, "k")
				values(t, "future", []reply{r})
				assert.Equal(t, cache.Stale, r.Outcome)
				assert.Zero(t, r.Age, "no negative age is shown")
				time.Sleep(f.takes)
				synctest.Wait()
				r = f.ask(1, "k")
				values(t, "v1", []reply{r})
				assert.Equal(t, cache.Hit, r.Outcome)
			})
		})
	}
}

// Without windows such an entry is a miss.
func TestWithoutWindowsAnEntryFromTheFutureIsAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, store)
		f.store("k", "future")
		spoiler(f, store)(func(e cache.Entry) cache.Entry { e.Age -= time.Hour; return e })
		r := f.ask(0, "k")
		values(t, "v1", []reply{r})
		assert.Equal(t, cache.Computed, r.Outcome)
	})
}

// An entry that is older than the store can tell (its age came late) is no more than old.
func TestAgesFarTooHighAreAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m}
		f := fleetOver(t, m, cache.Options[string]{Policy: windows}, store)
		f.store("k", "old")
		spoiler(f, store)(func(e cache.Entry) cache.Entry { e.Age = 1<<63 - 1; return e })
		values(t, "v1", []reply{f.ask(0, "k")})
	})
}

// What the store keeps beyond its time is of no use, not even in trouble.
func TestPastAllItsWindowsAValueIsNotServedEvenInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m}
		f := fleetOver(t, m, cache.Options[string]{Policy: windows, Wait: time.Second}, store)
		f.store("k", "old")
		spoiler(f, store)(func(e cache.Entry) cache.Entry { e.Age += windows.Retain(); return e })
		f.down.Store(true)
		require.ErrorIs(t, f.ask(0, "k").err, errDown)
		r := f.askFor(t.Context(), 0, "k", func(ctx context.Context) (string, error) { return "", pause(ctx, 2*time.Second) })
		require.ErrorIs(t, r.err, recompute.ErrBusy)
		_, err := f.replicas[0].Get(t.Context(), "k")
		require.ErrorIs(t, err, cache.ErrNotFound)
		time.Sleep(2 * time.Second)
	})
}

// The time that a read takes counts as age; the time that passes while a value is in hand does too.
func TestAnAgeIncludesTheTimeInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: windows})
		f.store("k", "v")
		f.down.Store(true)
		put := time.Now()
		for _, d := range []time.Duration{0, time.Second, windows.Fresh, 30 * time.Second} {
			time.Sleep(d)
			for i, c := range f.replicas {
				got, err := c.Get(t.Context(), "k")
				require.NoError(t, err)
				assert.Equal(t, time.Since(put), got.Age)
				assert.Equal(t, time.Since(put), f.ask(i, "k").Age)
			}
		}
		time.Sleep(time.Minute)
		r := f.ask(1, "k") // waits for its own computation first, which fails
		assert.Positive(t, r.took)
		assert.Equal(t, time.Since(put), r.Age, "served in the place of an error, and as old as it is")
	})
}

// Guarantee 24: any mix of calls; each has one outcome, and the hooks count what there was.
func TestOutcomesAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		policy := windows
		policy.Negative, policy.Beta, policy.Jitter = time.Second, 1, 0.2
		o := cache.Options[string]{Policy: policy, Wait: 200 * time.Millisecond}
		o.Fallback = func(_ context.Context, key string, cause error) (string, error) {
			if key < "k5" {
				return "fallback", nil
			}
			return "", fmt.Errorf("no fallback either: %w", cause)
		}
		f := fleetOver(t, m, o, m, m, m)
		f.takes = 0
		var replies []reply
		for round := range 300 {
			f.down.Store(round%5 == 0)
			key := fmt.Sprint("k", round%10)
			compute := func(ctx context.Context) (string, error) {
				if err := pause(ctx, time.Duration(round%4)*100*time.Millisecond); err != nil {
					return "", err
				}
				return f.compute(ctx)
			}
			if round%7 == 0 {
				compute = absent
			}
			replies = append(replies, f.crowdFor(1+round%3, key, compute)()...)
			if round%11 == 0 {
				time.Sleep(windows.Fresh + windows.WhileRevalidate)
			}
			if round%13 == 0 {
				require.NoError(t, f.replicas[round%3].Delete(t.Context(), key))
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		failed := 0
		for _, r := range replies {
			if r.err != nil {
				failed++
				require.Zero(t, r.Result)
				continue
			}
			require.NotEmpty(t, r.Value)
		}
		for o := cache.Hit; o <= cache.FellBack; o++ {
			assert.EqualValues(t, count(o, replies), f.outcomes[o].Load(), "%v", o)
			assert.Positive(t, count(o, replies), "%v", o)
		}
		assert.EqualValues(t, failed, f.errors.Load())
		assert.Positive(t, failed)
		assert.EqualValues(t, len(replies), f.calls.Load())
	})
}

func TestOutcomesHaveNames(t *testing.T) {
	names := map[cache.Outcome]string{
		0: "none", cache.Hit: "hit", cache.Stale: "stale", cache.Computed: "computed",
		cache.Collapsed: "collapsed", cache.FellBack: "fell-back", 17: "none",
	}
	for o, name := range names {
		assert.Equal(t, name, o.String())
	}
}
