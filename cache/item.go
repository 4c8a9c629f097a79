package cache

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/stale"
)

// item is an entry that was read and checked, or a value on its way to become one. The zero item is a miss.
type item[V any] struct {
	found   bool
	absent  bool // the negative answer
	value   V
	payload []byte // what value was decoded from; nil if it could not be encoded
	fence   Fence
	windows stale.Policy
	cost    time.Duration
	age     time.Duration // at the time at
	at      time.Time
	taken   *atomic.Bool // whether value was given away; nil if there is only one who can get it

	local       bool // it is the last known one
	unpublished bool // and the store does not have it
}

// now returns the age of the item by now.
func (i item[V]) now() time.Duration { return i.age + time.Since(i.at) }

func (i item[V]) phase() stale.Phase {
	if !i.found {
		return stale.Expired
	}
	phase := i.windows.Phase(i.now())
	if i.unpublished { // it is still to be published
		phase = min(phase, stale.WhileRevalidate)
	}
	return phase
}

// read makes an item of an entry. Whatever does not check out is a miss.
func (c *Cache[V]) read(key Key, e Entry) item[V] {
	i := c.readAlone(key, e)
	if i.found && !c.shared {
		i.taken = new(atomic.Bool)
	}
	return i
}

// readAlone is read for an item that only one caller can get.
func (c *Cache[V]) readAlone(key Key, e Entry) item[V] {
	i, err := c.decode(key, e.Data)
	if err != nil {
		c.o.Trace.damaged(err)
		return item[V]{}
	}
	i.fence, i.age, i.at = e.Fence, e.Age, time.Now()
	return i
}

func (c *Cache[V]) decode(key Key, data []byte) (i item[V], err error) {
	defer func() {
		if p := recover(); p != nil { // of a codec that isn't ours
			i, err = item[V]{}, fmt.Errorf("cache: decoding panicked: %v", p)
		}
	}()
	e, err := open(key, data)
	if err != nil {
		return item[V]{}, err
	}
	i = item[V]{found: true, absent: e.absent, payload: e.value, windows: e.windows, cost: e.cost}
	if !e.absent {
		i.value, err = c.o.Codec.Decode(e.value)
	}
	return i, err
}

// copyOf returns a value that its receiver may change without anybody else noticing: the first gets the value itself.
func (c *Cache[V]) copyOf(i item[V]) V {
	switch {
	case c.o.Clone != nil:
		return c.o.Clone(i.value)
	case c.shared || i.payload == nil || i.taken == nil || i.taken.CompareAndSwap(false, true):
		return i.value
	}
	v, err := c.o.Codec.Decode(i.payload)
	if err != nil {
		return i.value // can't be: these bytes were decoded before
	}
	return v
}
