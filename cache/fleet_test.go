package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

// The policies of most tests: a value that runs out at once, and one that has every window.
var (
	plain   = stale.Policy{Fresh: time.Minute}
	windows = stale.Policy{Fresh: time.Minute, WhileRevalidate: time.Minute, IfError: time.Hour}
)

var errDown = errors.New("the database is down")

// fleet is replicas over one store, and the source that they compute from. It ends with its test, in which it must
// leave neither a lease nor a flight behind and have given each call one outcome.
type fleet struct {
	t        *testing.T
	memory   *cache.Memory // where the store keeps what it keeps
	replicas []*cache.Cache[string]

	takes           time.Duration // of one computation
	runs, now, most atomic.Int64  // computations: how many there were, are, were at once
	down            atomic.Bool   // they fail

	calls    atomic.Int64
	outcomes [cache.FellBack + 1]atomic.Int64
	errors   atomic.Int64

	damaged, overtaken, unencodable, storeFailed, held, lost atomic.Int64

	keys      sync.Map
	strangers bool // somebody else may hold a lease at the end
}

func newFleet(t *testing.T, replicas int, o cache.Options[string]) *fleet {
	t.Helper()
	m := cache.NewMemory()
	stores := make([]cache.Store, replicas)
	for i := range stores {
		stores[i] = m
	}
	return fleetOver(t, m, o, stores...)
}

// fleetOver has one replica for each store.
func fleetOver(t *testing.T, m *cache.Memory, o cache.Options[string], stores ...cache.Store) *fleet {
	t.Helper()
	f := &fleet{t: t, memory: m, takes: 300 * time.Millisecond}
	f.count(&o.Trace)
	for _, s := range stores {
		c, err := cache.New(s, o)
		require.NoError(t, err)
		f.replicas = append(f.replicas, c)
	}
	t.Cleanup(f.end)
	return f
}

func (f *fleet) count(trace *cache.Trace) {
	done := trace.Done
	trace.Done = func(o cache.Outcome, took time.Duration, err error) {
		f.outcomes[o].Add(1)
		if err != nil {
			f.errors.Add(1)
		}
		if done != nil {
			done(o, took, err)
		}
	}
	trace.Damaged = func(error) { f.damaged.Add(1) }
	trace.Overtaken = func() { f.overtaken.Add(1) }
	trace.Unencodable = func(error) { f.unencodable.Add(1) }
	trace.StoreFailed = func(string, error) { f.storeFailed.Add(1) }
	trace.Lease.Held = func() { f.held.Add(1) }
	trace.Lease.Lost = func() { f.lost.Add(1) }
}

func (f *fleet) end() {
	for _, c := range f.replicas {
		require.NoError(f.t, c.Close())
		assert.Zero(f.t, c.InFlight(), "flights")
		assert.Zero(f.t, c.Waiting(), "names that somebody waits for")
		assert.Zero(f.t, c.Reading(), "names that are read")
	}
	total := int64(0)
	for i := range f.outcomes {
		total += f.outcomes[i].Load()
	}
	assert.Equal(f.t, f.calls.Load(), total, "each call has one outcome, or an error")
	assert.Equal(f.t, f.errors.Load(), f.outcomes[0].Load(), "an error has no outcome")
	if !f.strangers {
		f.keys.Range(func(key, _ any) bool { f.free(key.(string)); return true })
	}
}

// free asserts that nobody holds the lease of key.
func (f *fleet) free(key string) {
	f.t.Helper()
	lease, err := f.memory.Locker().Acquire(context.WithoutCancel(f.t.Context()), key, time.Second)
	if assert.NoError(f.t, err, "the lease of %q is left", key) {
		assert.NoError(f.t, lease.Release(context.WithoutCancel(f.t.Context())))
	}
}

// compute is the source: it counts, takes its time or until ctx ends, and never says the same twice.
func (f *fleet) compute(ctx context.Context) (string, error) {
	n := f.enter()
	defer f.now.Add(-1)
	if err := pause(ctx, f.takes); err != nil {
		return "", err
	}
	if f.down.Load() {
		return "", errDown
	}
	return fmt.Sprint("v", n), nil
}

// enter counts a computation in, for those that are not the fleet's own.
func (f *fleet) enter() int64 {
	now := f.now.Add(1)
	for most := f.most.Load(); now > most && !f.most.CompareAndSwap(most, now); most = f.most.Load() {
	}
	return f.runs.Add(1)
}

// gated computes like compute, but not before the gate is open.
func (f *fleet) gated(gate <-chan struct{}) cache.Compute[string] {
	return func(ctx context.Context) (string, error) {
		n := f.enter()
		defer f.now.Add(-1)
		select {
		case <-gate:
			return fmt.Sprint("v", n), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// deaf computes like gated, and does not heed its context.
func (f *fleet) deaf(gate <-chan struct{}) cache.Compute[string] {
	return func(context.Context) (string, error) {
		n := f.enter()
		defer f.now.Add(-1)
		<-gate
		return fmt.Sprint("v", n), nil
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reply is what a caller got.
type reply struct {
	cache.Result[string]
	err  error
	took time.Duration
}

// ask asks replica i.
func (f *fleet) ask(i int, key string) reply { return f.askFor(f.t.Context(), i, key, f.compute) }

func (f *fleet) askFor(ctx context.Context, i int, key string, compute cache.Compute[string]) reply {
	f.calls.Add(1)
	f.keys.Store(key, nil)
	began := time.Now()
	r, err := f.replicas[i].Lookup(ctx, key, compute)
	return reply{r, err, time.Since(began)}
}

// crowd has k callers ask each replica, all together, and waits for their replies.
func (f *fleet) crowd(k int, key string) []reply { return f.crowdFor(k, key, f.compute)() }

// crowdFor has k callers ask each replica; the function it returns waits for their replies.
func (f *fleet) crowdFor(k int, key string, compute cache.Compute[string]) func() []reply {
	replies := make([]reply, k*len(f.replicas))
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i] = f.askFor(f.t.Context(), i%len(f.replicas), key, compute) })
	}
	return func() []reply {
		all.Wait()
		return replies
	}
}

// store puts a value.
func (f *fleet) store(key, value string) {
	f.t.Helper()
	require.NoError(f.t, f.replicas[0].Set(f.t.Context(), key, value))
}

// stands asserts what the store has for key that may be served, "" for nothing.
func (f *fleet) stands(key, value string) {
	f.t.Helper()
	for i, c := range f.replicas {
		r, err := c.Get(f.t.Context(), key)
		if value == "" {
			assert.ErrorIs(f.t, err, cache.ErrNotFound, "replica %d", i)
			continue
		}
		assert.NoError(f.t, err, "replica %d", i)
		assert.Equal(f.t, value, r.Value, "replica %d", i)
	}
}

// values asserts that every reply is value without an error.
func values(t *testing.T, want string, replies []reply) {
	t.Helper()
	for _, r := range replies {
		require.NoError(t, r.err)
		require.Equal(t, want, r.Value)
		require.NotZero(t, r.Outcome)
	}
}

// count returns how many replies have an outcome.
func count(o cache.Outcome, replies []reply) (n int) {
	for _, r := range replies {
		if r.Outcome == o && r.err == nil {
			n++
		}
	}
	return n
}
