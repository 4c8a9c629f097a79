package cache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/cachetest"
	"github.com/bellwether-cache/bellwether/internal/linear"
	"github.com/bellwether-cache/bellwether/internal/traffic"
	"github.com/bellwether-cache/bellwether/stale"
)

// undecided is when a history is too long to be decided.
const undecided = time.Minute

// storeHistory is what clients of stores saw; it is checked outside of the bubble.
func storeHistory(t *testing.T, o traffic.Options, stores func() []cache.Store) (h *linear.History[linear.Register]) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { h = traffic.Stores(t.Context(), o, stores()...) })
	return h
}

// cacheHistory is what clients of three caches saw, each over a store that open returns.
func cacheHistory(t *testing.T, o traffic.Options, open func() traffic.Store, policy stale.Policy, wrap func(traffic.Cache) traffic.Cache) (h *linear.History[linear.Row]) {
	t.Helper()
	o.Failed = func(err error) { assert.NoError(t, err) }
	synctest.Test(t, func(t *testing.T) {
		var replicas []traffic.Replica
		for range 3 {
			w := &traffic.Witness{Store: open()}
			c, err := cache.New(w, cache.Options[traffic.Value]{Policy: policy, Lease: 200 * time.Millisecond})
			require.NoError(t, err)
			defer func() { assert.NoError(t, c.Close()) }()
			replicas = append(replicas, traffic.Replica{Cache: wrap(c), Witness: w})
		}
		h = traffic.Caches(t.Context(), o, replicas...)
	})
	return h
}

func asItIs(c traffic.Cache) traffic.Cache { return c }

// chaotic returns a function that opens stores over one Memory, each with its own chaos.
func chaotic(o cachetest.ChaosOptions) func() traffic.Store {
	var m *cache.Memory
	return func() traffic.Store {
		if m == nil {
			m = cache.NewMemory()
		}
		o.Seed += 1000
		return cachetest.NewChaos(m, o)
	}
}

// Clients of the store see one register for each name, which only the numbers guard: whatever fails on their way to it.
func TestWhatClientsOfAStoreSeeHasOneOrder(t *testing.T) {
	eachChaosOutside(t, func(t *testing.T, o cachetest.ChaosOptions) {
		h := storeHistory(t, traffic.Options{Seed: o.Seed}, func() []cache.Store {
			open := chaotic(o)
			return []cache.Store{open(), open(), open()}
		})
		require.NoError(t, h.Check(undecided))
		t.Log(h.Len(), "steps")
	})
}

// Callers of caches get what was valid at a moment after they asked: whatever fails on the way to the store.
func TestWhatCallersOfAFleetGetHasOneOrder(t *testing.T) {
	eachChaosOutside(t, func(t *testing.T, o cachetest.ChaosOptions) {
		h := cacheHistory(t, traffic.Options{Seed: o.Seed}, chaotic(o), lifetimes[o.Seed%uint64(len(lifetimes))], asItIs)
		require.NoError(t, h.Check(undecided))
		t.Log(h.Len(), "steps")
	})
}

// Checks that never fail prove nothing: each of these stores and caches breaks the promise in one way, and is found out.
func TestABrokenStoreIsFoundOut(t *testing.T) {
	for _, c := range []struct {
		says              string
		writes, deletions bool // are heeded
		want              error
	}{
		{"all numbers are heeded", true, true, nil},
		{"every write is accepted", false, false, linear.ErrNoOrder},
		{"a deletion takes no number", true, false, linear.ErrNoOrder},
		{"a write heeds deletions only", false, true, linear.ErrNoOrder},
	} {
		t.Run(c.says, func(t *testing.T) {
			store := &naive{Memory: cache.NewMemory(), writes: c.writes, deletions: c.deletions}
			h := storeHistory(t, traffic.Options{}, func() []cache.Store { return []cache.Store{store, store, store} })
			assert.ErrorIs(t, h.Check(undecided), c.want)
		})
	}
}

func TestACacheOverABrokenStoreIsFoundOut(t *testing.T) {
	for says, c := range map[string]struct {
		deletions bool // are heeded
		want      error
	}{
		"all numbers are heeded":     {true, nil},
		"a deletion takes no number": {false, linear.ErrNoOrder},
	} {
		t.Run(says, func(t *testing.T) {
			var store *naive
			open := func() traffic.Store {
				if store == nil {
					store = &naive{Memory: cache.NewMemory(), writes: true, deletions: c.deletions}
				}
				return store
			}
			h := cacheHistory(t, traffic.Options{}, open, plain, asItIs)
			assert.ErrorIs(t, h.Check(undecided), c.want)
		})
	}
}

func TestACacheThatRemembersOnItsOwnIsFoundOut(t *testing.T) {
	h := cacheHistory(t, traffic.Options{}, chaotic(cachetest.ChaosOptions{}), plain, func(c traffic.Cache) traffic.Cache {
		return &elephant{Cache: c}
	})
	assert.ErrorIs(t, h.Check(undecided), linear.ErrNoOrder)
}

// elephant gives an answer again for a while, without asking whether it was deleted.
type elephant struct {
	traffic.Cache
	last sync.Map // by key
}

type remembered struct {
	cache.Result[traffic.Value]
	at time.Time
}

func (f *elephant) Lookup(ctx context.Context, key string, compute cache.Compute[traffic.Value]) (cache.Result[traffic.Value], error) {
	if last, ok := f.last.Load(key); ok && time.Since(last.(remembered).at) < 20*time.Millisecond {
		r := last.(remembered).Result
		r.Outcome = cache.Hit
		return r, nil
	}
	r, err := f.Cache.Lookup(ctx, key, compute)
	if err == nil {
		f.last.Store(key, remembered{r, time.Now()})
	}
	return r, err
}

// naive is a store in a map, which heeds the numbers as far as it is told to. Nothing runs out, nothing is announced.
type naive struct {
	*cache.Memory // for its locker
	writes        bool
	deletions     bool

	mu    sync.Mutex
	names map[string]*naiveRecord
}

type naiveRecord struct {
	last, bar cache.Fence
	entry     cache.Entry
}

// of runs do on what is known of a name.
func (n *naive) of(name string, do func(r *naiveRecord)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.names == nil {
		n.names = make(map[string]*naiveRecord)
	}
	if n.names[name] == nil {
		n.names[name] = new(naiveRecord)
	}
	do(n.names[name])
}

func (n *naive) Get(_ context.Context, key cache.Key) (e cache.Entry, err error) {
	n.of(key.Name, func(r *naiveRecord) { e = r.entry })
	if e.Data == nil {
		return cache.Entry{}, cache.ErrNotFound
	}
	return e, nil
}

func (n *naive) GetPromptly(ctx context.Context, key cache.Key) (cache.Entry, error) {
	return n.Get(ctx, key)
}

func (n *naive) Begin(_ context.Context, key cache.Key, seen cache.Fence, _ time.Duration) (f cache.Fence, e cache.Entry, _ error) {
	n.of(key.Name, func(r *naiveRecord) {
		r.last++
		f = r.last
		if r.entry.Data != nil && r.entry.Fence > seen {
			e = r.entry
		}
	})
	return f, e, nil
}

func (n *naive) Set(_ context.Context, key cache.Key, w cache.Write) (err error) {
	n.of(key.Name, func(r *naiveRecord) {
		if n.writes && w.Fence < r.entry.Fence || n.deletions && w.Fence < r.bar {
			err = cache.ErrFenced
			return
		}
		r.entry = cache.Entry{Data: w.Data, Fence: w.Fence}
	})
	return err
}

func (n *naive) Fail(context.Context, cache.Key, cache.Failure) error { return nil }

func (n *naive) Delete(_ context.Context, _ time.Duration, names ...string) error {
	for _, name := range names {
		n.of(name, func(r *naiveRecord) { r.bar, r.entry = r.last+1, cache.Entry{} })
	}
	return nil
}
