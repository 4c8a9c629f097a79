package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/bellwether-cache/bellwether/stale"
)

// Get returns the value of key if the store has one that may be served, and never computes. Else it returns
// [ErrNotFound]. Trouble with the store is an error here, and not that one. A value within WhileRevalidate is
// returned as it is, with nothing done behind it.
func (c *Cache[V]) Get(ctx context.Context, key string) (Result[V], error) {
	k, err := c.check(ctx, key)
	if err != nil {
		return Result[V]{}, err
	}
	e, err := c.store.Get(ctx, k)
	if err != nil {
		return Result[V]{}, err
	}
	i := c.read(k, e)
	if i.phase() < stale.WhileRevalidate {
		return Result[V]{}, ErrNotFound
	}
	return c.serve(i)
}

// Set stores v for key, in place of whatever is there; a computation under way can't overwrite it. Unlike trouble
// on the way of a Lookup, trouble with the store is an error here; then it is not known whether v is stored, and the key
// will be deleted once the store can, unless something newer is written. A deletion or another Set at the same time
// may win, that is no error.
func (c *Cache[V]) Set(ctx context.Context, key string, v V) error {
	k, err := c.check(ctx, key)
	if err != nil {
		return err
	}
	payload, err := c.o.Codec.Encode(v)
	if err == nil {
		_, err = c.o.Codec.Decode(payload) // what can't be read back would never be hit
	}
	if err != nil {
		return fmt.Errorf("cache: Set: encode: %w", err)
	}
	i := item[V]{payload: payload, windows: c.o.Policy.Spread(rand.Float64())}
	c.forget(k.Name)
	defer c.forget(k.Name)
	if err := c.put(ctx, k, i); err != nil {
		if !errors.Is(err, ErrTooBig) {
			c.repair(k.Name)
		}
		return fmt.Errorf("cache: Set: %w", err)
	}
	return nil
}

func (c *Cache[V]) put(ctx context.Context, k Key, i item[V]) error {
	fence, _, err := c.store.Begin(ctx, k, math.MaxInt64, margin)
	if failed := (*FailedError)(nil); errors.As(err, &failed) || errors.Is(err, ErrPass) {
		// What failed or must not be stored was computed; this value was given. A deletion clears the record.
		if err = c.store.Delete(ctx, 0, k.Name); err == nil {
			fence, _, err = c.store.Begin(ctx, k, math.MaxInt64, margin)
		}
	}
	if err != nil {
		return err
	}
	w := i.write(k, fence)
	w.Sole = true
	if err := c.store.Set(ctx, k, w); err != nil && !errors.Is(err, ErrFenced) {
		return err
	}
	return nil
}

// Delete removes keys. When it has returned nil, no value whose computation began before is served any more, by any
// process: a computation under way can't bring one back, and only those who asked before get its result. On error
// some of the keys may still be there; the deletion
// is repeated until the store takes it (of 10,000 keys at most), unless something newer is written or the cache is closed.
//
// Change the source first, then delete: a computation between the two would read the old source and be current.
func (c *Cache[V]) Delete(ctx context.Context, keys ...string) error {
	names := make([]string, len(keys))
	for i, key := range keys {
		k, err := c.place(key)
		if err != nil {
			return err
		}
		names[i] = k.Name
	}
	defer c.forget(names...)
	c.forget(names...)
	if err := c.store.Delete(ctx, 0, names...); err != nil {
		c.repair(names...)
		return fmt.Errorf("cache: Delete: %w", err)
	}
	return nil
}

// forget sees to it that newcomers do not get what was before: no flight that has begun, no failure.
func (c *Cache[V]) forget(names ...string) {
	for _, name := range names {
		c.runs.Forget(name)
		c.near.drop(name)
		c.failures.drop(name)
	}
}
