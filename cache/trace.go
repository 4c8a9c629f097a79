package cache

import (
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// Trace is a set of hooks; each may be nil. They must be quick and safe for concurrent use. None receives a key, so
// that no key can become a metric's label.
type Trace struct {
	Lease recompute.Trace // what happens to leases

	Done        func(o Outcome, took time.Duration, err error) // each call; o is 0 when err is not nil
	Computed    func(took time.Duration, err error)            // each computation
	StoreFailed func(step string, err error)                   // "get", "begin", "set" or "fail" did not work; the call goes on
	Damaged     func(why error)                                // an entry could not be read and counts as missing
	Unencodable func(err error)                                // a value can't be stored; its callers get it all the same
	Overtaken   func()                                         // a result was refused by the fence: a later write or deletion stands
	Push        func(on bool, err error)                       // whether the store tells of events; without, waiting polls
}

func (t Trace) done(o Outcome, began time.Time, err error) {
	if t.Done != nil {
		t.Done(o, time.Since(began), err)
	}
}

func (t Trace) acquired(since time.Time) {
	if t.Lease.Acquired != nil {
		t.Lease.Acquired(time.Since(since))
	}
}

func (t Trace) held() {
	if t.Lease.Held != nil {
		t.Lease.Held()
	}
}

func (t Trace) failed(err error) {
	if t.Lease.Failed != nil {
		t.Lease.Failed(err)
	}
}

func (t Trace) released(err error) {
	if t.Lease.Released != nil {
		t.Lease.Released(err)
	}
}

func (t Trace) computed(took time.Duration, err error) {
	if t.Computed != nil {
		t.Computed(took, err)
	}
}

func (t Trace) storeFailed(step string, err error) {
	if t.StoreFailed != nil {
		t.StoreFailed(step, err)
	}
}

func (t Trace) damaged(why error) {
	if t.Damaged != nil {
		t.Damaged(why)
	}
}

func (t Trace) unencodable(err error) {
	if t.Unencodable != nil {
		t.Unencodable(err)
	}
}

func (t Trace) overtaken() {
	if t.Overtaken != nil {
		t.Overtaken()
	}
}

func (t Trace) push(on bool, err error) {
	if t.Push != nil {
		t.Push(on, err)
	}
}
