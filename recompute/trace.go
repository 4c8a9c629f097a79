package recompute

import "time"

// Trace is a set of hooks into the life of leases; each may be nil. They run on the goroutine that does the work
// and must be quick and safe for concurrent use. None receives a key, so that no key can become a metric's label.
type Trace struct {
	Acquired func(took time.Duration) // a lease was granted
	Held     func()                   // another holder has the lease: contention, not a failure
	Failed   func(err error)          // the locker could not tell; the work goes on unprotected
	Extended func(err error)          // nil, ErrLost, or an unknown outcome that will be tried again
	Lost     func()                   // the work's context ended because the lease was lost
	Released func(err error)          // nil, ErrLost (expired or a successor's), or an unknown outcome
}

func (t Trace) extended(err error) {
	if t.Extended != nil {
		t.Extended(err)
	}
}

func (t Trace) lost() {
	if t.Lost != nil {
		t.Lost()
	}
}
