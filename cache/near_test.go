package cache_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

// outage is a store that fails in a way that a test chooses, and whose events may be lost.
type outage struct {
	*shim
	why  atomic.Pointer[error] // of all steps but delete
	deaf atomic.Bool           // events are lost
	tell func(cache.Event)
}

func newOutage() *outage {
	o := &outage{shim: &shim{Memory: cache.NewMemory()}}
	o.before = func(_ context.Context, step string) error {
		if why := o.why.Load(); why != nil && step != "delete" {
			return *why
		}
		return nil
	}
	return o
}

func (o *outage) begin(why error) { o.why.Store(&why) }
func (o *outage) end()            { o.why.Store(nil) }

// disconnect and connect are what a subscription goes through.
func (o *outage) disconnect() { o.deaf.Store(true); o.tell(cache.Event{Kind: cache.Disconnected}) }
func (o *outage) connect()    { o.deaf.Store(false); o.tell(cache.Event{Kind: cache.Connected}) }

func (o *outage) Watch(ctx context.Context, tell func(cache.Event)) {
	o.tell = tell
	o.Memory.Watch(ctx, func(e cache.Event) {
		if !o.deaf.Load() {
			tell(e)
		}
	})
}

var errNobody = fmt.Errorf("%w: %w", cache.ErrUnreachable, errDown)

// hangs is for a store that can't be reached, which one step takes a second to find out.
func hangs(what string) func(context.Context, string) error {
	return func(_ context.Context, step string) error {
		if step == what {
			time.Sleep(time.Second)
		}
		return errNobody
	}
}

// cut runs f on a cache whose store has "k" (computed by somebody else) and is then cut off, after 30 s of a minute of freshness.
func cut(t *testing.T, p stale.Policy, f func(t *testing.T, o *outage, c, other *cache.Cache[string], compute cache.Compute[string], runs *atomic.Int64)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		c, other := open(t, o, cache.Options[string]{Policy: p}), open(t, o.Memory, cache.Options[string]{Policy: p})
		synctest.Wait()
		require.NoError(t, other.Set(t.Context(), "k", "known"))
		v, err := c.GetOrCompute(t.Context(), "k", nilCompute)
		require.NoError(t, err)
		require.Equal(t, "known", v)
		time.Sleep(30 * time.Second)
		compute, runs := tallied(100*time.Millisecond, "new")
		f(t, o, c, other, compute, runs)
	})
}

func ask(t *testing.T, c *cache.Cache[string], compute cache.Compute[string]) cache.Result[string] {
	t.Helper()
	r, err := c.Lookup(t.Context(), "k", compute)
	require.NoError(t, err)
	return r
}

func TestTheLastKnownValueStandsInForAStoreThatCannotBeReached(t *testing.T) {
	cut(t, windows, func(t *testing.T, o *outage, c, _ *cache.Cache[string], compute cache.Compute[string], runs *atomic.Int64) {
		o.begin(errNobody)
		r := ask(t, c, nilCompute)
		assert.Equal(t, cache.Result[string]{Value: "known", Outcome: cache.Stale, Age: 30 * time.Second}, r)
		time.Sleep(time.Minute)
		for range 100 {
			ask(t, c, compute) // served at once, computed behind the answer
		}
		time.Sleep(time.Second)
		for range 50 {
			assert.Equal(t, "new", ask(t, c, compute).Value)
			time.Sleep(time.Second)
		}
		assert.EqualValues(t, 1, runs.Load(), "once in its lifetime")
		o.end()
		ask(t, c, compute)
		time.Sleep(time.Second)
		assert.Equal(t, cache.Hit, ask(t, c, compute).Outcome, "and published once that can be done")
		assert.EqualValues(t, 2, runs.Load())
		_, err := c.Get(t.Context(), "absent")
		assert.ErrorIs(t, err, cache.ErrNotFound)
	})
}

func TestALastKnownValueThatWasDeletedIsNotServed(t *testing.T) {
	for says, end := range map[string]func(t *testing.T, o *outage, c, other *cache.Cache[string]){
		"deleted elsewhere": func(t *testing.T, o *outage, _, other *cache.Cache[string]) {
			o.begin(errNobody)
			require.NoError(t, other.Delete(t.Context(), "k"))
		},
		"deleted here": func(t *testing.T, o *outage, c, _ *cache.Cache[string]) {
			o.begin(errNobody)
			require.NoError(t, c.Delete(t.Context(), "k"))
		},
		"about to be deleted here": func(t *testing.T, o *outage, c, _ *cache.Cache[string]) {
			o.before = hangs("delete")
			go func() { _ = c.Delete(t.Context(), "k") }()
			synctest.Wait()
		},
		"about to be replaced here": func(t *testing.T, o *outage, c, _ *cache.Cache[string]) {
			o.before = hangs("begin")
			go func() { _ = c.Set(t.Context(), "k", "newer") }()
			synctest.Wait()
		},
		"read while it was deleted here, which is heard later": func(t *testing.T, o *outage, c, _ *cache.Cache[string]) {
			o.deaf.Store(true)
			o.before = func(_ context.Context, step string) error {
				if step == "delete" {
					time.Sleep(time.Second)
				}
				return nil
			}
			var deleting sync.WaitGroup
			deleting.Go(func() { assert.NoError(t, c.Delete(t.Context(), "k")) })
			synctest.Wait()
			require.Equal(t, "known", ask(t, c, nilCompute).Value)
			deleting.Wait()
			o.before = hangs("")
		},
		"deleted while deletions were not heard": func(t *testing.T, o *outage, _, other *cache.Cache[string]) {
			o.disconnect()
			require.NoError(t, other.Delete(t.Context(), "k"))
			o.connect()
			o.begin(errNobody)
		},
		"perhaps deleted: it is not heard, and others may reach the store": func(_ *testing.T, o *outage, _, _ *cache.Cache[string]) {
			o.disconnect()
			o.begin(errDown)
		},
		"written by somebody else": func(t *testing.T, o *outage, _, other *cache.Cache[string]) {
			require.NoError(t, other.Set(t.Context(), "k", "newer"))
			o.begin(errNobody)
			o.disconnect()
		},
		"evicted": func(t *testing.T, o *outage, c, _ *cache.Cache[string]) {
			*o.Memory = *cache.NewMemory()
		},
	} {
		t.Run(says, func(t *testing.T) {
			cut(t, windows, func(t *testing.T, o *outage, c, other *cache.Cache[string], compute cache.Compute[string], runs *atomic.Int64) {
				end(t, o, c, other)
				r := ask(t, c, compute)
				assert.NotEqual(t, "known", r.Value)
				time.Sleep(2 * time.Second) // what is under way ends
			})
		})
	}
}

// What a computation under way had read before a deletion is no last known value.
func TestAComputationThatADeletionOvertookLeavesNoLastKnownValue(t *testing.T) {
	cut(t, windows, func(t *testing.T, o *outage, c, other *cache.Cache[string], compute cache.Compute[string], runs *atomic.Int64) {
		require.NoError(t, c.Delete(t.Context(), "k"))
		o.begin(errNobody)
		var callers sync.WaitGroup
		callers.Go(func() { ask(t, c, compute) })
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, other.Delete(t.Context(), "k"))
		callers.Wait()
		ask(t, c, compute)
		assert.EqualValues(t, 2, runs.Load())
		ask(t, c, compute)
		assert.EqualValues(t, 2, runs.Load(), "the second one stays")
	})
}

// Guarantee 3: a store that hangs costs whoever has a last known value a moment.
func TestWithALastKnownValueNobodyWaitsForAStoreThatHangs(t *testing.T) {
	cut(t, windows, func(t *testing.T, o *outage, c, _ *cache.Cache[string], compute cache.Compute[string], runs *atomic.Int64) {
		o.before = func(ctx context.Context, _ string) error {
			time.Sleep(time.Second)
			return errNobody
		}
		began := time.Now()
		assert.Equal(t, cache.Stale, ask(t, c, compute).Outcome)
		assert.LessOrEqual(t, time.Since(began), 150*time.Millisecond)
	})
}

// Guarantee 25.
func TestLastKnownValuesAreBoundedByBytesAndEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1 << 20
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: plain, Near: most})
		for i := range 5_000 {
			_, err := c.GetOrCompute(t.Context(), fmt.Sprint(i), func(context.Context) (string, error) { return strings.Repeat("v", i%3000), nil })
			require.NoError(t, err)
		}
		bytes, entries := c.Near()
		assert.LessOrEqual(t, bytes, most)
		assert.Greater(t, bytes, most/2)
		assert.LessOrEqual(t, entries, most/256)
	})
}

// Nor for a store that refuses connections, which ends its events as well.
func TestWithALastKnownValueNobodyWaitsForAStoreThatRefusesConnections(t *testing.T) {
	cut(t, windows, func(t *testing.T, o *outage, c, _ *cache.Cache[string], _ cache.Compute[string], _ *atomic.Int64) {
		o.prompt = true
		o.begin(errNobody)
		o.disconnect()
		began := time.Now()
		for range 10 {
			r := ask(t, c, nilCompute)
			assert.Equal(t, "known", r.Value)
			assert.Equal(t, cache.Stale, r.Outcome)
		}
		assert.Zero(t, time.Since(began))
	})
}

// Nor twice for one whose events end while it is being asked.
func TestWithALastKnownValueNobodyWaitsTwiceForAStoreThatHasJustGone(t *testing.T) {
	cut(t, windows, func(t *testing.T, o *outage, c, _ *cache.Cache[string], _ cache.Compute[string], _ *atomic.Int64) {
		o.before = func(context.Context, string) error {
			time.Sleep(200 * time.Millisecond)
			return errNobody
		}
		time.AfterFunc(10*time.Millisecond, o.disconnect)
		began := time.Now()
		assert.Equal(t, "known", ask(t, c, nilCompute).Value)
		assert.Equal(t, 200*time.Millisecond, time.Since(began))
	})
}

// Nor for one that is asked now and then whether it is back.
func TestWithALastKnownValueNobodyWaitsForAStoreThatIsAway(t *testing.T) {
	cut(t, windows, func(t *testing.T, o *outage, c, _ *cache.Cache[string], _ cache.Compute[string], _ *atomic.Int64) {
		var gets atomic.Int64
		o.before = func(ctx context.Context, _ string) error {
			gets.Add(1)
			time.Sleep(250 * time.Millisecond)
			return errNobody
		}
		o.disconnect()
		began := time.Now()
		var callers sync.WaitGroup
		for i := range 20 { // some of whom come when the store is being asked, and would wait for the next time
			callers.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				assert.Equal(t, "known", ask(t, c, nilCompute).Value)
				assert.LessOrEqual(t, time.Since(began), 250*time.Millisecond, "until it is known")
			})
		}
		callers.Wait()
		asked := gets.Load()
		for range 20 {
			began := time.Now()
			r := ask(t, c, nilCompute)
			assert.Equal(t, "known", r.Value)
			assert.Equal(t, cache.Stale, r.Outcome)
			assert.Zero(t, time.Since(began), "and never again")
			time.Sleep(100 * time.Millisecond)
		}
		assert.Greater(t, gets.Load(), asked, "though it is asked")
		time.Sleep(time.Second)
		o.before = func(context.Context, string) error { time.Sleep(time.Millisecond); return nil }
		ask(t, c, nilCompute) // asks behind the answer
		time.Sleep(time.Second)
		assert.Equal(t, cache.Hit, ask(t, c, nilCompute).Outcome, "and found when it is back")
	})
}
