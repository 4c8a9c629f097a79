package stale

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Validate reports everything that is wrong with the policy, joined, one line a
// fault: the field, what was given and what is allowed. It is nil for a policy
// that can work, including one whose windows add up to more than a
// [time.Duration] holds (see Retain).
func (p Policy) Validate() error {
	var faults []error
	if p.Fresh < least {
		faults = append(faults, fault("Fresh", p.Fresh, "must be at least 1ms"+slip(p.Fresh)))
	}
	for _, w := range []struct {
		field string
		given time.Duration
	}{
		{"WhileRevalidate", p.WhileRevalidate},
		{"IfError", p.IfError},
		{"Keep", p.Keep},
		{"Cooldown", p.Cooldown},
		{"Negative", p.Negative},
	} {
		if w.given != 0 && w.given < least {
			faults = append(faults, fault(w.field, w.given, "must be 0 or at least 1ms"+slip(w.given)))
		}
	}
	// Both asked in the positive: NaN fails every comparison.
	if ok := p.Jitter >= 0 && p.Jitter <= 1; !ok {
		faults = append(faults, fault("Jitter", p.Jitter, "must be from 0 to 1"))
	}
	if ok := p.Beta >= 0 && p.Beta <= math.MaxFloat64; !ok {
		faults = append(faults, fault("Beta", p.Beta, "must be finite and ≥ 0"))
	}
	return errors.Join(faults...)
}

// least is the shortest window that is meant. Fresh: 60 is 60 ns, and no error of the compiler: it looks as if the
// cache never hit.
const least = time.Millisecond

// slip says what may have gone wrong where so short a time was given.
func slip(given time.Duration) string {
	if given <= 0 {
		return ""
	}
	return "; a bare number means nanoseconds"
}

func fault(field string, given any, allowed string) error {
	return fmt.Errorf("stale: Policy.%s is %v, %s", field, given, allowed)
}
