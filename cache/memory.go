package cache

import (
	"bytes"
	"context"
	"maps"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// Memory is a [Store] in this process: for tests, and for programs of one process. Two caches over one Memory behave
// like two replicas over one Redis server. It has no bound but the TTL of its entries. Create one with [NewMemory].
type Memory struct {
	locks recompute.Local

	mu       sync.Mutex
	names    map[string]*record
	sweep    int // number of names at which expired ones are dropped
	watchers map[*watcher]struct{}
}

// record is all that is known of a name.
type record struct {
	last    Fence // the last number taken
	bar     Fence // computations with a lower number are refused
	hold    time.Time
	entries map[string]*kept // by schema
	failed  map[string]failed
}

type failed struct {
	err   error
	until time.Time
}

type kept struct {
	data      []byte
	fence     Fence
	published time.Time
	until     time.Time
}

type watcher struct{ tell func(Event) }

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	m := &Memory{names: make(map[string]*record), watchers: make(map[*watcher]struct{})}
	m.locks.Signal = func(name string, s recompute.Signal) {
		kind := Released
		if s == recompute.Renewed {
			kind = Renewed
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.announce(Event{Kind: kind, Key: Key{Name: name}})
	}
	return m
}

// Locker returns the locker that elects among the caches over this Memory.
func (m *Memory) Locker() recompute.Locker { return &m.locks }

// Get returns the entry of key.
func (m *Memory) Get(_ context.Context, key Key) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.names[key.Name].entry(key.Schema); e.Data != nil {
		return e, nil
	}
	return Entry{}, ErrNotFound
}

// GetPromptly returns the entry of key.
func (m *Memory) GetPromptly(ctx context.Context, key Key) (Entry, error) { return m.Get(ctx, key) }

// Begin takes a number.
func (m *Memory) Begin(_ context.Context, key Key, seen Fence, hold time.Duration) (Fence, Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.record(key.Name)
	if f := r.failed[key.Schema]; time.Now().Before(f.until) {
		return 0, Entry{}, f.err
	}
	r.hold = later(r.hold, time.Now().Add(hold))
	n := r.take()
	if e := r.entry(key.Schema); e.Fence > seen {
		return n, e, nil
	}
	return n, Entry{}, nil
}

// Set writes an entry under its fence.
func (m *Memory) Set(_ context.Context, key Key, w Write) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.names[key.Name]
	if r == nil || r.last < w.Fence || r.bar > w.Fence {
		return ErrFenced
	}
	if k := r.entries[key.Schema]; k != nil && k.fence > w.Fence {
		return ErrFenced
	}
	if w.Sole {
		r.bar = w.Fence
		clear(r.entries)
	}
	now := time.Now()
	k := &kept{data: bytes.Clone(w.Data), fence: w.Fence, published: now, until: now.Add(w.TTL)}
	r.entries[key.Schema] = k
	delete(r.failed, key.Schema)
	m.announce(Event{Kind: Published, Key: key, Entry: k.entry()})
	m.drop()
	return nil
}

// Fail remembers a failure.
func (m *Memory) Fail(_ context.Context, key Key, f Failure) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.names[key.Name]
	if r == nil || r.bar > f.Fence {
		return ErrFenced
	}
	if k := r.entries[key.Schema]; k != nil && k.fence > f.Fence {
		return ErrFenced
	}
	err := error(&FailedError{Text: f.Text})
	if f.Pass {
		err = ErrPass
	}
	if f.Pause > 0 {
		until := time.Now().Add(f.Pause)
		r.failed[key.Schema] = failed{err: err, until: until}
		r.hold = later(r.hold, until)
	}
	m.announce(Event{Kind: Failed, Key: key, Err: err})
	return nil
}

// Delete removes names.
func (m *Memory) Delete(_ context.Context, ago time.Duration, names ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		r := m.record(name)
		n := r.take()
		if ago > 0 {
			n = Fence(time.Now().Add(-ago).UnixMicro())
		}
		r.bar = max(r.bar, n)
		r.hold = later(r.hold, time.Now().Add(time.Minute))
		maps.DeleteFunc(r.entries, func(_ string, k *kept) bool { return k.fence <= n })
		clear(r.failed)
		m.announce(Event{Kind: Deleted, Key: Key{Name: name}})
	}
	m.drop()
	return nil
}

// Watch tells of events until ctx ends. None is missed.
func (m *Memory) Watch(ctx context.Context, tell func(Event)) {
	w := &watcher{tell: tell}
	m.mu.Lock()
	m.watchers[w] = struct{}{}
	tell(Event{Kind: Connected})
	m.mu.Unlock()
	<-ctx.Done()
	m.mu.Lock()
	delete(m.watchers, w)
	m.mu.Unlock()
}

// announce tells of an event; m is locked, so that all hear the events in the order in which they happened.
func (m *Memory) announce(e Event) {
	for w := range m.watchers {
		w.tell(e)
	}
}

// record returns what is known of a name. Of a new one nothing is known, so whatever began before is refused.
func (m *Memory) record(name string) *record {
	r := m.names[name]
	if r == nil {
		r = &record{entries: make(map[string]*kept), failed: make(map[string]failed)}
		r.bar = r.take()
		m.names[name] = r
	}
	return r
}

// drop forgets the names that have expired, each time that their number has doubled.
func (m *Memory) drop() {
	const least = 1024
	if len(m.names) < max(m.sweep, least) {
		return
	}
	now := time.Now()
	for name, r := range m.names {
		held := now.Before(r.hold)
		for schema, k := range r.entries {
			switch over := !now.Before(k.until); {
			case over && held:
				k.data = nil // its number still refuses lower ones
			case over:
				delete(r.entries, schema)
			}
		}
		if len(r.entries) == 0 && !held {
			delete(m.names, name)
		}
	}
	m.sweep = 2 * len(m.names)
}

func (r *record) take() Fence {
	r.last = max(Fence(time.Now().UnixMicro()), r.last+1)
	return r.last
}

func (r *record) entry(schema string) Entry {
	if r == nil {
		return Entry{}
	}
	if k := r.entries[schema]; k != nil && time.Now().Before(k.until) {
		return k.entry()
	}
	return Entry{}
}

func (k *kept) entry() Entry {
	return Entry{Data: k.data, Fence: k.fence, Age: time.Since(k.published)}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
