package recompute

import "time"

// Trace is a set of hooks into the life of leases; each may be nil. They run on the goroutine that does the work,
// Extended and Lost on another beside it, and must be quick and safe for concurrent use. None receives a key, so that no key can become a metric's label.
type Trace struct {
	Acquired func(took time.Duration)            // a lease was granted, so long after it was first asked for
	Held     func()                              // another holder has the lease: contention, not a failure
	Failed   func(err error)                     // the locker could not tell: a cache computes without protection, a Guard does not run the work
	Extended func(err error)                     // nil, ErrLost, or an unknown outcome that will be tried again
	Lost     func()                              // the work's context ended because the lease was lost
	Released func(err error)                     // nil, ErrLost (expired or a successor's), or an unknown outcome
	Worked   func(took time.Duration, err error) // of a Guard: how long the work ran, and what it returned
	Left     func(left, ttl time.Duration)       // of a Guard: what was left of the lease when it was released; 0: it had been lost
}

func (t Trace) acquired(took time.Duration) {
	if t.Acquired != nil {
		t.Acquired(took)
	}
}

func (t Trace) held() {
	if t.Held != nil {
		t.Held()
	}
}

func (t Trace) failed(err error) {
	if t.Failed != nil {
		t.Failed(err)
	}
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

func (t Trace) worked(took time.Duration, err error) {
	if t.Worked != nil {
		t.Worked(took, err)
	}
}

func (t Trace) left(left, ttl time.Duration) {
	if t.Left != nil {
		t.Left(left, ttl)
	}
}

func (t Trace) released(err error) {
	if t.Released != nil {
		t.Released(err)
	}
}
