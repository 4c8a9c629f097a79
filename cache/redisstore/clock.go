package redisstore

import (
	"sync"
	"time"
)

// clock knows the server's time from the replies of scripts. It errs to the late side only, by less than the time
// that the reply took: a reply's time is taken after the command was sent.
type clock struct {
	off bool // several servers, several clocks: never known

	mu     sync.Mutex
	ahead  time.Duration // of the server's clock (since 1970) before the local one (since start)
	taken  time.Time
	anchor time.Time
}

const (
	// trusted is how long a reading serves for hits. After a failover the next server's clock counts by then, or as
	// soon as one of its readings contradicts the last.
	trusted = time.Second
	// usable is how long a reading serves for dating announcements, with drift allowed for.
	usable = time.Minute
	drift  = 1000 // one part in it
)

// observe takes a reading and returns the server's time by now.
func (c *clock) observe(sent time.Time, server int64) (now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.anchor.IsZero() {
		c.anchor = sent
	}
	ahead := time.Duration(server)*time.Microsecond - sent.Sub(c.anchor)
	least := time.Duration(server)*time.Microsecond - time.Since(c.anchor) // had the server read its clock only now
	if c.taken.IsZero() || time.Since(c.taken) > trusted || ahead < c.ahead || least > c.ahead {
		c.ahead, c.taken = ahead, sent
	}
	return (ahead + time.Since(c.anchor)).Microseconds()
}

// known says whether the server's time is known well enough for a hit.
func (c *clock) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.off && !c.taken.IsZero() && time.Since(c.taken) <= trusted
}

// now returns the server's time, 0 if it is not known at all.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Since(c.taken)
	if c.off || c.taken.IsZero() || since > usable {
		return 0
	}
	return (c.ahead + time.Since(c.anchor) + since/drift).Microseconds()
}
