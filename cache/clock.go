package cache

import (
	"sync/atomic"
	"time"
)

// moment is a point in a cache's own time: nanoseconds on the monotonic clock, made unique, so that of two moments
// one is always the earlier. A value may be given to a caller if it was valid in the store at some moment after the
// caller asked.
type moment int64

type clock struct {
	start time.Time
	last  atomic.Int64
}

// now returns a moment later than all before it.
func (c *clock) now() moment {
	for {
		last := c.last.Load()
		next := max(int64(time.Since(c.start)), last+1)
		if c.last.CompareAndSwap(last, next) {
			return moment(next)
		}
	}
}

// before returns the moment that was d ago.
func (c *clock) before(d time.Duration) moment {
	return moment(time.Since(c.start) - d)
}
