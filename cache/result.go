package cache

import "time"

// Result is an answer and where it came from.
type Result[V any] struct {
	Value   V
	Outcome Outcome
	Age     time.Duration // since the value was published, on the store's clock; 0 for one that was not
}

// Outcome says how a call was answered. Every call without an error has exactly one.
type Outcome uint8

const (
	Hit       Outcome = iota + 1 // a fresh value from the store
	Stale                        // a value past its freshness, within the policy's windows
	Computed                     // this call's own computation
	Collapsed                    // another call's computation, in this process or another
	FellBack                     // Options.Fallback
)

func (o Outcome) String() string {
	switch o {
	case Hit:
		return "hit"
	case Stale:
		return "stale"
	case Computed:
		return "computed"
	case Collapsed:
		return "collapsed"
	case FellBack:
		return "fell-back"
	}
	return "none"
}
