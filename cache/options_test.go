package cache_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// Case 53, with every knob: what can't work is refused, and named.
func TestNewRefusesWhatCanNotWork(t *testing.T) {
	with := func(change func(o *cache.Options[string])) cache.Options[string] {
		o := cache.Options[string]{Policy: plain}
		change(&o)
		return o
	}
	for want, o := range map[string]cache.Options[string]{
		"Policy.Fresh is 0s":            {},
		"Policy.Fresh is -1s":           with(func(o *cache.Options[string]) { o.Policy.Fresh = -time.Second }),
		"Policy.WhileRevalidate is -1s": with(func(o *cache.Options[string]) { o.Policy.WhileRevalidate = -time.Second }),
		"Policy.IfError is -1s":         with(func(o *cache.Options[string]) { o.Policy.IfError = -time.Second }),
		"Policy.Jitter is 1.5":          with(func(o *cache.Options[string]) { o.Policy.Jitter = 1.5 }),
		"Policy.Jitter is -0.1":         with(func(o *cache.Options[string]) { o.Policy.Jitter = -0.1 }),
		"Policy.Jitter is NaN":          with(func(o *cache.Options[string]) { o.Policy.Jitter = math.NaN() }),
		"Policy.Beta is -1":             with(func(o *cache.Options[string]) { o.Policy.Beta = -1 }),
		"Policy.Beta is +Inf":           with(func(o *cache.Options[string]) { o.Policy.Beta = math.Inf(1) }),
		"Policy.Cooldown is -1s":        with(func(o *cache.Options[string]) { o.Policy.Cooldown = -time.Second }),
		"Policy.Negative is -1s":        with(func(o *cache.Options[string]) { o.Policy.Negative = -time.Second }),
		"Options.Wait is -1s":           with(func(o *cache.Options[string]) { o.Wait = -time.Second }),
		"Options.Limit is -1s":          with(func(o *cache.Options[string]) { o.Limit = -time.Second }),
		"Options.Lease is -1s":          with(func(o *cache.Options[string]) { o.Lease = -time.Second }),
		"Options.Lease is 29ms":         with(func(o *cache.Options[string]) { o.Lease = 29 * time.Millisecond }),
		"Policy.Fresh is 60ns":          with(func(o *cache.Options[string]) { o.Policy.Fresh = 60 }),
		"Options.Wait is 60ns, must be at least 1ms (0: as Limit); a bare number means nanoseconds": with(func(o *cache.Options[string]) { o.Wait = 60 }),
		"Options.Limit is 60ns, must be at least 1ms (0: 30s); a bare number means nanoseconds":     with(func(o *cache.Options[string]) { o.Limit = 60 }),
		"Options.Lease is 60ns, must be at least 30ms (0: 2s); a bare number means nanoseconds":     with(func(o *cache.Options[string]) { o.Lease = 60 }),
	} {
		c, err := cache.New(cache.NewMemory(), o)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n", "one fault is one")
		require.Nil(t, c)
	}
}

func TestNewReportsAllFaultsTogether(t *testing.T) {
	_, err := cache.New[string](nil, cache.Options[string]{Wait: -1, Lease: 1})
	for _, want := range []string{"Policy.Fresh", "Options.Wait", "Options.Lease", "store is nil"} {
		require.ErrorContains(t, err, want)
	}
}

func TestNewRefusesANilStore(t *testing.T) {
	for _, store := range []cache.Store{nil, (*cache.Memory)(nil)} {
		_, err := cache.New(store, cache.Options[string]{Policy: plain})
		require.ErrorContains(t, err, "the store is nil")
	}
}

// picky is a store that has options of its own.
type picky struct {
	*cache.Memory
	fault error
}

func (p picky) Validate() error { return p.fault }

func TestNewReportsTheStoresFaults(t *testing.T) {
	_, err := cache.New(picky{cache.NewMemory(), errDown}, cache.Options[string]{Policy: plain})
	require.ErrorIs(t, err, errDown)
	c, err := cache.New(picky{cache.NewMemory(), nil}, cache.Options[string]{Policy: plain})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

func TestTheSmallestOptionsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const least = time.Millisecond
		f := newFleet(t, 1, cache.Options[string]{Policy: stale.Policy{Fresh: least}, Wait: least, Limit: least, Lease: 30 * least})
		f.takes = 0
		values(t, "v1", []reply{f.ask(0, "k")})
	})
}

func TestDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain})
		left := make(chan time.Duration, 1)
		r := f.askFor(t.Context(), 0, "k", func(ctx context.Context) (string, error) {
			until, _ := ctx.Deadline()
			left <- time.Until(until)
			<-ctx.Done()
			return "", ctx.Err()
		})
		require.Error(t, r.err)
		assert.Equal(t, 30*time.Second, r.took, "Wait is Limit")
		assert.Equal(t, 30*time.Second, <-left, "Limit is 30 s")
	})
}

// mute is a store that brings no locker.
type mute struct{ cache.Store }

func TestWithoutALockerEachProcessComputesForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, mute{m}, mute{m}, mute{m})
		for _, r := range f.crowd(20, "k") {
			require.NoError(t, r.err)
		}
		assert.LessOrEqual(t, f.runs.Load(), int64(3))
		assert.Greater(t, f.runs.Load(), int64(1))
	})
}

func TestTheOptionsLockerComesBeforeTheStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := &locks{Locker: new(recompute.Local)}
		f := newFleet(t, 2, cache.Options[string]{Policy: plain, Locker: own})
		values(t, "v1", f.crowd(5, "k"))
		assert.Positive(t, own.acquired.Load())
	})
}

func TestCallsThatCanNotWorkSaySo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain})
		c := f.replicas[0]
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, call := range []struct {
			want string
			ctx  context.Context
			key  string
		}{
			{"the key is empty", t.Context(), ""}, // case 11
			{"context canceled", ended, "k"},
		} {
			r := f.askFor(call.ctx, 0, call.key, f.compute)
			require.ErrorContains(t, r.err, call.want)
			_, err := c.Get(call.ctx, call.key)
			require.ErrorContains(t, err, call.want)
			require.ErrorContains(t, c.Set(call.ctx, call.key, "v"), call.want)
			if call.key == "" { // a deletion is done even if its caller has gone
				require.ErrorContains(t, c.Delete(call.ctx, call.key), call.want)
				require.ErrorContains(t, c.Delete(call.ctx, "fine", call.key), call.want)
			}
		}
		r := f.askFor(t.Context(), 0, "k", nil)
		require.ErrorContains(t, r.err, "compute is nil")
		assert.Zero(t, f.runs.Load())
		f.keys.Delete("")
		f.stands("k", "")
	})
}
