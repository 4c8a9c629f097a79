package redisstore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steps are bytes by which the first sending of a step is known: each script is sent in full then.
var steps = map[string]string{
	"get":     "Returns {now in µs, entry}.",
	"acquire": "Returns 1 granted",
	"begin":   "ARGV schema, seen, hold",
	"set":     "envelope ('' to remove)",
	"release": "Returns 1 released",
}

var faults = map[string]faultproxy.Rule{
	"its reply is lost":         {Do: faultproxy.DropReply},
	"its reply never comes":     {Do: faultproxy.StallReply},
	"it is lost":                {Do: faultproxy.DropRequest},
	"it comes late":             {Do: faultproxy.Delay, For: 100 * time.Millisecond},
	"it comes after its budget": {Do: faultproxy.Delay, For: 400 * time.Millisecond},
}

// Case 17 and its cousins: one command of a miss meets one fault. There is a right value for all, at most one computation
// for each replica, no long wait behind one's own lease, no lease left, and the key is cached afterwards.
func TestOneFaultAtOneStepDoesNotShow(t *testing.T) {
	t.Parallel()
	for step, marker := range steps {
		for what, rule := range faults {
			t.Run(step+": "+what, func(t *testing.T) {
				t.Parallel()
				s := serve(t)
				proxy := faultproxy.Start(t, s.Addr)
				a, b := join(t, proxy.Addr, plain[string]), join[string](t, s.Addr)
				rule.Marker, rule.Nth = marker, 1
				hits := proxy.On(rule)
				o := origin[string]{value: "v", takes: 100 * time.Millisecond}
				began := time.Now()
				var wg sync.WaitGroup
				wg.Go(func() { herd(t, []*replica[string]{a}, 10, "k", "v", o.compute) })
				require.Eventually(t, func() bool { return hits.Count()+int(o.runs.Load()) > 0 }, patience, tick) // a is first
				herd(t, []*replica[string]{b}, 10, "k", "v", o.compute)
				wg.Wait()
				took := time.Since(began)
				assert.Equal(t, 1, hits.Count())
				t.Logf("%d computations, %v", o.runs.Load(), took.Round(time.Millisecond))
				assert.LessOrEqual(t, o.runs.Load(), int64(2))
				assert.Less(t, took, 1500*time.Millisecond, "a lease is 2 s")
				time.Sleep(rule.For) // all has arrived
				assert.Eventually(t, func() bool { return len(leases(b.rdb)) == 0 }, time.Second/2, tick, "a lease is left")

				next := origin[string]{value: "next"}
				v, err := a.GetOrCompute(t.Context(), "k", next.compute)
				require.NoError(t, err)
				assert.Equal(t, v, get(t, a, "k", never[string](t), cache.Hit))
				assert.Equal(t, v, get(t, b, "k", never[string](t), cache.Hit))
			})
		}
	}
}

// A hit whose reply is lost is read again, or the value is computed; it is never an error.
func TestALostReplyToAReadIsNoError(t *testing.T) {
	t.Parallel()
	for what, rule := range faults {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			proxy := faultproxy.Start(t, s.Addr)
			r := join(t, proxy.Addr, plain[string])
			o := origin[string]{value: "v"}
			get(t, r, "k", o.compute, cache.Computed)
			rule.Marker, rule.Nth = "hget", 1
			hits := proxy.On(rule)
			for range 3 {
				v, err := r.GetOrCompute(t.Context(), "k", o.compute)
				require.NoError(t, err)
				assert.Equal(t, "v", v)
			}
			assert.Equal(t, 1, hits.Count())
			assert.LessOrEqual(t, o.runs.Load(), int64(2))
		})
	}
}

// A deletion whose reply is lost was done, or is an error; it is never quietly left out.
func TestALostReplyToADeletionIsNoSilentFailure(t *testing.T) {
	t.Parallel()
	for what, rule := range faults {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			proxy := faultproxy.Start(t, s.Addr)
			a, b := join(t, proxy.Addr, plain[string]), join[string](t, s.Addr)
			get(t, b, "k", (&origin[string]{value: "v"}).compute, cache.Computed)
			rule.Marker, rule.Nth = "memory in ms, channel", 1
			hits := proxy.On(rule)
			err := a.Delete(t.Context(), "k")
			assert.Equal(t, 1, hits.Count())
			t.Log(err)
			if err == nil {
				assert.Equal(t, "w", get(t, b, "k", (&origin[string]{value: "w"}).compute, cache.Computed))
				return
			}
			require.Eventually(t, func() bool { return a.Delete(t.Context(), "k") == nil }, patience, tick, "again")
			assert.Equal(t, "w", get(t, b, "k", (&origin[string]{value: "w"}).compute, cache.Computed))
			time.Sleep(rule.For) // the first may still be on its way
		})
	}
}

// One renewal that fails is tried again in time.
func TestALostRenewalIsMadeUpFor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	proxy := faultproxy.Start(t, s.Addr)
	short := func(s *setup[string]) { s.cache.Lease = 2 * time.Second }
	a, b := join(t, proxy.Addr, plain[string], short), join(t, s.Addr, short)
	proxy.On(faultproxy.Rule{Marker: extension, Nth: 1, Do: faultproxy.StallReply}) // what is lost at once, go-redis sends again
	o := origin[string]{value: "v", takes: 4 * time.Second}
	asked := ask(t, a, "k", o.compute)
	time.Sleep(100 * time.Millisecond)
	get(t, b, "k", o.compute, cache.Collapsed)
	assert.NoError(t, (<-asked).err)
	assert.EqualValues(t, 1, o.runs.Load())
	assert.Zero(t, a.tally.lost.Load())
}

const extension = "message. Returns 1 extended" // in the script, which is sent in full until it has worked once

// When no renewal works, the work learns of it before its lease ends, and another process takes over. (Guarantee 2: at
// most 1 + ⌊d/L⌋ computations.)
func TestAHolderWhoseRenewalsFailMakesRoom(t *testing.T) {
	t.Parallel()
	s := serve(t)
	proxy := faultproxy.Start(t, s.Addr)
	short := func(s *setup[string]) { s.cache.Lease = 600 * time.Millisecond }
	a, b := join(t, proxy.Addr, plain[string], short), join(t, s.Addr, short)
	proxy.On(faultproxy.Rule{Marker: extension, Do: faultproxy.DropRequest})
	var runs atomic.Int64
	asked := ask(t, a, "k", func(ctx context.Context) (string, error) {
		runs.Add(1)
		select {
		case <-time.After(2 * time.Second):
			return "v1", nil
		case <-ctx.Done():
			assert.ErrorIs(t, context.Cause(ctx), recompute.ErrLost)
			return "", ctx.Err()
		}
	})
	time.Sleep(100 * time.Millisecond)
	v2 := origin[string]{value: "v2"}
	got := <-ask(t, b, "k", v2.compute)
	require.NoError(t, got.err)
	assert.Equal(t, "v2", got.Value)
	assert.Less(t, got.took, 1700*time.Millisecond, "two leases, and a little")
	got = <-asked
	require.NoError(t, got.err)
	assert.Contains(t, []string{"v1", "v2"}, got.Value)
	for _, r := range []*replica[string]{a, b} {
		assert.Equal(t, "v2", get(t, r, "k", never[string](t), cache.Hit))
	}
	assert.LessOrEqual(t, runs.Load()+v2.runs.Load(), int64(1+2000/600))
	t.Logf("%d computations by the one whose renewals fail", runs.Load())
}
