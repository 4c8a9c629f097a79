package traffic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/linear"
)

// Value is what the caches keep: a version of a row, and which computation read it, 0 for one that was written.
type Value struct{ Version, Run int64 }

// Cache is a [cache.Cache] of a replica, or something that pretends to be one.
type Cache interface {
	Lookup(ctx context.Context, key string, compute cache.Compute[Value]) (cache.Result[Value], error)
	Get(ctx context.Context, key string) (cache.Result[Value], error)
	Set(ctx context.Context, key string, v Value) error
	Delete(ctx context.Context, keys ...string) error
}

// Replica is a cache with the witness of what its store said.
type Replica struct {
	Cache   Cache
	Witness *Witness
}

// Caches has clients of each replica change a source and then delete or write, look up and get, and returns what
// happened to each row. Nothing may have been done to the keys before.
func Caches(ctx context.Context, o Options, replicas ...Replica) *linear.History[linear.Row] {
	o = o.complete()
	c := &cacheClients{o: o, replicas: replicas, history: new(linear.History[linear.Row]), rows: make(map[string]*atomic.Int64)}
	for i := range o.Names {
		c.rows[fmt.Sprint("k", i)] = new(atomic.Int64)
	}
	o.run(len(replicas), func(i int, key string, dice *rand.Rand) {
		switch n := dice.IntN(40); {
		case n == 0:
			c.put(ctx, i, key)
		case n < 4:
			c.delete(ctx, i, key)
		case n < 10:
			c.get(ctx, i, key)
		default:
			c.lookup(ctx, i, key, dice)
		}
	})
	return c.history
}

type cacheClients struct {
	o        Options
	replicas []Replica
	history  *linear.History[linear.Row]
	rows     map[string]*atomic.Int64 // the version of each row
	number   atomic.Int64             // of the last computation
	runs     sync.Map                 // by number
}

// run is a computation.
type run struct {
	replica int
	key     string
	fence   cache.Fence
}

func (c *cacheClients) lookup(ctx context.Context, i int, key string, dice *rand.Rand) {
	takes := upTo(c.o.Takes, dice)
	call := c.history.Now()
	r, err := c.replicas[i].Cache.Lookup(ctx, key, func(ctx context.Context) (Value, error) {
		v := Value{c.rows[key].Load(), c.number.Add(1)}
		c.runs.Store(v.Run, run{i, key, cache.FenceOf(ctx)})
		select {
		case <-time.After(takes):
			return v, nil
		case <-ctx.Done():
			return Value{}, ctx.Err()
		}
	})
	switch {
	case err != nil:
		c.o.Failed(err)
	case c.alone(i, r):
		c.history.Did(own(key, i), call, linear.Given{Version: r.Value.Version})
	default:
		c.history.Did(key, call, linear.Given{Version: r.Value.Version})
	}
}

// alone says whether an answer is the replica's own result, of which the store could not say whether it still holds, or
// the last known one of a store that does not answer. There was nobody to tell the replica of deletions by others, or
// not yet; of its own it knows.
func (c *cacheClients) alone(i int, r cache.Result[Value]) bool {
	if r.Outcome == cache.Stale && c.o.NoStale {
		return true
	}
	made, ok := c.runs.Load(r.Value.Run)
	if !ok || r.Outcome != cache.Computed && r.Outcome != cache.Collapsed {
		return false
	}
	of := made.(run)
	return of.replica == i && !c.replicas[i].Witness.judged(of.key, of.fence)
}

// own is what replica i itself may give of a row.
func own(key string, i int) string { return fmt.Sprintf("%s, of replica %d", key, i) }

func (c *cacheClients) get(ctx context.Context, i int, key string) {
	call := c.history.Now()
	if r, err := c.replicas[i].Cache.Get(ctx, key); err == nil {
		c.history.Did(key, call, linear.Given{Version: r.Value.Version})
	}
}

// change makes a new version of the row, for all to see.
func (c *cacheClients) change(key string) int64 {
	call := c.history.Now()
	v := c.rows[key].Add(1)
	c.history.Did(key, call, linear.Changed{Version: v})
	for i := range c.replicas {
		c.history.Did(own(key, i), call, linear.Changed{Version: v})
	}
	return v
}

func (c *cacheClients) delete(ctx context.Context, i int, key string) {
	c.change(key)
	call := c.history.Now()
	if c.replicas[i].Cache.Delete(ctx, key) == nil {
		c.history.Did(key, call, linear.Deleted{})
		c.history.Did(own(key, i), call, linear.Deleted{})
	}
}

func (c *cacheClients) put(ctx context.Context, i int, key string) {
	v := c.change(key)
	call := c.history.Now()
	known := c.replicas[i].Cache.Set(ctx, key, Value{Version: v}) == nil
	c.record(known, key, call, v)
	for j := range c.replicas {
		c.record(known && j == i, own(key, j), call, v) // the others may have seen it, and know it still
	}
}

// record notes a version that was written, or perhaps.
func (c *cacheClients) record(known bool, object string, call linear.Moment, version int64) {
	record := c.history.Tried
	if known {
		record = c.history.Did
	}
	record(object, call, linear.Put{Version: version})
}
