package cache

import (
	"errors"
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/stale"
	"github.com/maypok86/otter/v2"
)

// near keeps the last known entries in this process, within a bound of bytes. They stand in for a store that can't
// answer, and never for one that does, but for this: what could not be published stands in for the miss that it left in a
// store that takes no writes. A deletion that was heard ends what was known before, and so does any time in which
// deletions were not heard.
type near struct {
	clock   *clock
	schema  string                       // of the entries
	entries *otter.Cache[string, *known] // nil: nothing is kept
	seed    maphash.Seed
	hears   atomic.Int64       // the moment since when all events are heard, 0 before the first
	ends    [1024]atomic.Int64 // the moment of the last deletion, by the hash of the name
	writes  [1024]atomic.Int64 // the moment at which the last write was heard of, likewise
}

// known is an entry that the store had at a moment, or would have had if it could.
type known struct {
	entry Entry
	at    time.Time    // when it was of the age that it says
	asOf  atomic.Int64 // a moment at which it was valid

	unpublished bool // the store does not have it, as far as is known
	refused     bool // since it takes no writes
}

// overhead is what an entry takes besides its name and data, roughly, in bytes. It bounds the number of entries too.
const overhead = 256

func newNear(c *clock, schema string, most int) *near {
	n := &near{clock: c, schema: schema, seed: maphash.MakeSeed()}
	if most <= 0 {
		return n
	}
	n.entries = otter.Must(&otter.Options[string, *known]{
		MaximumWeight: uint64(most),
		Weigher: func(name string, k *known) uint32 {
			return uint32(min(len(name)+len(k.entry.Data)+overhead, math.MaxUint32))
		},
		Executor: func(f func()) { f() }, // no goroutines
	})
	return n
}

// keep remembers an entry that was valid at a moment, unless a newer one is known.
func (n *near) keep(name string, k *known, asOf moment) {
	if n.entries == nil || n.overtaken(name, k, asOf) {
		return
	}
	k.at = time.Now()
	k.asOf.Store(int64(asOf))
	n.entries.Compute(name, func(old *known, ok bool) (*known, otter.ComputeOp) {
		if ok && !n.replaces(k, old, asOf) {
			return nil, otter.CancelOp
		}
		return k, otter.WriteOp
	})
}

// replaces says whether k, valid at a moment, is to be known instead of old.
func (n *near) replaces(k, old *known, asOf moment) bool {
	switch {
	case k.unpublished && old.unpublished:
		return old.asOf.Load() <= int64(asOf)
	case k.unpublished: // not what was published since it was begun
		return old.entry.Fence <= k.entry.Fence || k.entry.Fence == 0 && n.clock.before(old.entry.Age+time.Since(old.at)) <= asOf
	case old.unpublished: // nor what the store had before, and could not replace
		return k.entry.Age <= time.Since(old.at)
	case old.entry.Fence == k.entry.Fence:
		raise(&old.asOf, asOf)
		return false
	}
	return old.entry.Fence <= k.entry.Fence
}

// saw is keep for what the store has just answered, which mostly is known: then it allocates nothing.
func (n *near) saw(name string, e Entry, asOf moment) {
	if n.entries == nil || e.Fence == 0 {
		return
	}
	if old, ok := n.entries.GetIfPresent(name); ok && old.entry.Fence == e.Fence && !old.unpublished {
		raise(&old.asOf, asOf)
		return
	}
	n.keep(name, &known{entry: e}, asOf)
}

func raise(v *atomic.Int64, to moment) {
	for old := v.Load(); old < int64(to) && !v.CompareAndSwap(old, int64(to)); old = v.Load() {
	}
}

// find returns what is known of a name and would have been ended by a deletion, or nil.
func (n *near) find(name string) *known {
	if n.entries == nil || n.hears.Load() == 0 {
		return nil
	}
	k, ok := n.entries.GetIfPresent(name)
	if !ok || k.asOf.Load() <= max(n.hears.Load(), n.end(name).Load()) || n.overtaken(name, k, moment(k.asOf.Load())) {
		return nil
	}
	return k
}

// overtaken says whether something was written since the computation began whose result could not be published.
func (n *near) overtaken(name string, k *known, begun moment) bool {
	return k.unpublished && int64(begun) <= n.writes[n.slot(name)].Load()
}

// drop ends what was known of a name.
func (n *near) drop(name string) {
	if n.entries == nil {
		return
	}
	raise(n.end(name), n.clock.now())
	n.entries.Invalidate(name)
}

// hear takes in what was written elsewhere, and since when that can be heard. (For deletions there is drop.)
func (n *near) hear(e Event) {
	switch e.Kind {
	case Connected:
		raise(&n.hears, n.clock.now())
	case Published:
		if n.entries == nil {
			return
		}
		asOf := n.clock.now() // before the look, so that a deletion between the two counts
		raise(&n.writes[n.slot(e.Key.Name)], asOf)
		old, ok := n.entries.GetIfPresent(e.Key.Name)
		switch newer := ok && (e.Entry.Fence > old.entry.Fence || e.Entry.Fence == 0); {
		case newer && e.Key.Schema == n.schema && e.Entry.Data != nil && e.Entry.Fence != 0:
			n.keep(e.Key.Name, &known{entry: e.Entry}, asOf)
		case newer: // one of another schema may have been written in its place, too
			n.entries.Invalidate(e.Key.Name)
		}
	}
}

func (n *near) end(name string) *atomic.Int64 { return &n.ends[n.slot(name)] }

func (n *near) slot(name string) uint64 { return maphash.String(n.seed, name) % uint64(len(n.ends)) }

// standIn returns the last known item of key in place of an answer of the store, which failed with err; a miss if
// there is none that can be relied on. Deletions that nobody hears of must be impossible: either they are heard of, or
// nobody can reach the store.
func (c *Cache[V]) standIn(key Key, err error) item[V] {
	k := c.near.find(key.Name)
	switch {
	case k == nil:
		return item[V]{}
	case errors.Is(err, ErrNotFound) && !(k.unpublished && k.refused):
		return item[V]{} // it was evicted, or flushed
	case !c.board.hears() && !errors.Is(err, ErrUnreachable):
		return item[V]{}
	}
	e := k.entry
	e.Age += time.Since(k.at)
	i := c.read(key, e)
	i.local, i.unpublished = true, k.unpublished
	if errors.Is(err, ErrNotFound) && i.windows.Phase(i.now()) < stale.Fresh {
		return item[V]{}
	}
	return i
}
