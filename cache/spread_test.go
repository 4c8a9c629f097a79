package cache_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

// Guarantee 15; case 55: 1,000 keys stored at once run out one by one, and every replica sees it so.
func TestKeysStoredTogetherRunOutOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, jitter = 1000, 0.1
		policy := stale.Policy{Fresh: time.Minute, WhileRevalidate: time.Hour, Jitter: jitter}
		f := newFleet(t, 3, cache.Options[string]{Policy: policy})
		f.takes = 0
		names := make([]string, keys)
		for i := range names {
			names[i] = fmt.Sprint("k", i)
			if i%2 == 0 {
				require.NoError(t, f.ask(i%3, names[i]).err)
			} else {
				f.store(names[i], "set")
			}
		}
		var ends []time.Duration // of freshness
		put := time.Now()
		time.Sleep(time.Duration(float64(policy.Fresh)*(1-jitter)) - time.Second)
		for left := names; len(left) > 0; time.Sleep(200 * time.Millisecond) {
			left = slices.DeleteFunc(left, func(name string) bool {
				first, err := f.replicas[0].Get(t.Context(), name)
				for _, c := range f.replicas[1:] {
					if r, e := c.Get(t.Context(), name); err != nil || e != nil || r != first {
						t.Fatal("every replica sees the same end", r, first, err, e)
					}
				}
				if first.Outcome == cache.Stale {
					ends = append(ends, time.Since(put))
				}
				return first.Outcome == cache.Stale
			})
			require.LessOrEqual(t, time.Since(put), policy.Fresh+200*time.Millisecond, "never later than the policy says")
		}
		require.Len(t, ends, keys)
		histogram := make([]int, 10)
		for _, end := range ends {
			require.GreaterOrEqual(t, end, time.Duration(float64(policy.Fresh)*(1-jitter)))
			tenth := int(float64(policy.Fresh-end) / (float64(policy.Fresh) * jitter) * 10)
			histogram[min(tenth, 9)]++
		}
		for i, n := range histogram { // 100 each but for chance: 6 standard deviations
			assert.InDelta(t, 100, n, 60, "tenth %d of %v", i, histogram)
		}
	})
}

// Case 55: the edges of jitter. Cases 53 and 69: no way of writing leaves an entry without a ttl.
func TestNoWayOfWritingLeavesAnEntryWithoutTTL(t *testing.T) {
	policies := map[string]stale.Policy{
		"plain":                    plain,
		"windows":                  windows,
		"1 ms, all jitter":         {Fresh: time.Millisecond, Jitter: 1},
		"negative":                 {Fresh: time.Minute, Negative: time.Second, Jitter: 1},
		"longer than there is":     {Fresh: 1<<63 - 1, WhileRevalidate: 1<<63 - 1, IfError: 1<<63 - 1},
		"longer than there is, ½":  {Fresh: 1<<63 - 1, Jitter: 0.5},
		"a negative of 1 ms":       {Fresh: time.Minute, Negative: time.Millisecond, Jitter: 1},
		"no windows, a long error": {Fresh: time.Millisecond, IfError: time.Hour},
	}
	brief := func(ctx context.Context) (string, error) {
		return "brief", cache.Lasting(ctx, stale.Policy{Fresh: 1, Jitter: 1})
	}
	for says, policy := range policies {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := cache.NewMemory()
				writes := 0
				store := &shim{Memory: m, writes: func(_ cache.Key, w cache.Write) {
					writes++
					if w.Data == nil {
						return // a removal
					}
					require.Positive(t, w.TTL)
					require.LessOrEqual(t, w.TTL, max(policy.Retain(), policy.Negative))
				}}
				f := fleetOver(t, m, cache.Options[string]{Policy: policy}, store)
				f.takes = 0
				for i := range 100 {
					key := fmt.Sprint("k", i)
					require.NoError(t, f.ask(0, key).err)                          // a miss
					require.NoError(t, f.replicas[0].Set(t.Context(), key, "set")) // Set
					require.NoError(t, f.replicas[0].Delete(t.Context(), key))
					require.ErrorIs(t, f.askFor(t.Context(), 0, key, absent).err, cache.ErrNotFound) // not found
					time.Sleep(min(policy.Fresh, time.Hour))
					require.NoError(t, f.ask(0, "refreshed").err)
					synctest.Wait()
					require.NoError(t, f.askFor(t.Context(), 0, "brief", brief).err) // the rest of a window
				}
				assert.GreaterOrEqual(t, writes, 200)
			})
		})
	}
}
