package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Case 13: the base acceptance test.
func TestTwoReplicasComputeAColdKeyOnce(t *testing.T) {
	t.Parallel()
	replicas := fleet[string](t, serve(t).Addr, 2)
	const batches, keys = 10, 5
	for b := range batches {
		var wg sync.WaitGroup
		for k := range keys {
			wg.Go(func() {
				o := origin[string]{value: fmt.Sprintf("%d/%d", b, k), takes: 300 * time.Millisecond}
				outcomes := herd(t, replicas, 100, o.value, o.value, o.compute)
				assert.EqualValues(t, 1, o.runs.Load())
				assert.Equal(t, map[cache.Outcome]int{cache.Computed: 1, cache.Collapsed: 199}, outcomes)
			})
		}
		wg.Wait()
	}
}

// Case 65: what holds for a cold key holds for one whose entry has run out, and for one whose entry is damaged.
func TestAFleetComputesOnceWhateverTheKeyHasBeen(t *testing.T) {
	t.Parallel()
	s := serve(t)
	replicas := fleet(t, s.Addr, 3, func(s *setup[string]) { s.cache.Policy.Fresh = 300 * time.Millisecond })
	o := origin[string]{value: "v", takes: 100 * time.Millisecond}
	for run := range 4 {
		herd(t, replicas, 30, "k", "v", o.compute)
		assert.EqualValues(t, run+1, o.runs.Load())
		if run%2 == 0 {
			time.Sleep(310 * time.Millisecond)
			continue
		}
		schema := entryField(t, replicas[0].rdb, "k")
		require.NoError(t, replicas[0].rdb.HSet(t.Context(), "t:v:{k}", schema, "garbage").Err())
	}
}

// Guarantee 5: nobody waits for a poll, and nobody waits for the one before. The durations are no multiples of any pause.
func TestTheLastWaiterHasTheValueRightAfterItIsPublished(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct{ replicas, callers int }{{10, 100}, {12, 1}, {1, 500}} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			replicas := fleet[string](t, serve(t).Addr, shape.replicas)
			for _, takes := range []time.Duration{537 * time.Millisecond, 1171 * time.Millisecond} {
				var done time.Time
				key := takes.String()
				herd(t, replicas, shape.callers, key, "v", func(context.Context) (string, error) {
					time.Sleep(takes)
					done = time.Now()
					return "v", nil
				})
				last := time.Since(done)
				t.Logf("%d × %d, %v: the last waiter had it after %v", shape.replicas, shape.callers, takes, last.Round(100*time.Microsecond))
				assert.Less(t, last, 250*time.Millisecond)
			}
		})
	}
}

// A holder that works for longer than its lease keeps it, and another process hears so.
func TestAComputationMayTakeManyLeases(t *testing.T) {
	t.Parallel()
	replicas := fleet(t, serve(t).Addr, 3, func(s *setup[string]) { s.cache.Lease = 300 * time.Millisecond })
	o := origin[string]{value: "v", takes: 2 * time.Second}
	herd(t, replicas, 20, "k", "v", o.compute)
	assert.EqualValues(t, 1, o.runs.Load())
}

// Cases 56 and 60: past its freshness a value is served at once to all, while one of them all computes the next.
func TestAStaleValueIsServedAtOnceAndRenewedOnceByTheFleet(t *testing.T) {
	t.Parallel()
	replicas := fleet(t, serve(t).Addr, 2, func(s *setup[string]) {
		s.cache.Policy.Fresh, s.cache.Policy.WhileRevalidate = 300*time.Millisecond, time.Minute
	})
	get(t, replicas[0], "k", (&origin[string]{value: "old"}).compute, cache.Computed)
	time.Sleep(310 * time.Millisecond)

	next := gate("new")
	began := time.Now()
	outcomes := herd(t, replicas, 500, "k", "old", next.compute)
	took := time.Since(began)
	assert.Equal(t, map[cache.Outcome]int{cache.Stale: 1000}, outcomes)
	assert.Less(t, took, time.Second, "1000 calls waited for the renewal")
	close(next.open)
	assert.Eventually(t, func() bool {
		r, err := replicas[1].Get(t.Context(), "k")
		return err == nil && r.Value == "new"
	}, 5*time.Second, time.Millisecond)
	assert.EqualValues(t, 1, next.runs.Load())
}
