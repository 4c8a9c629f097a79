package recompute

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// leastTTL is what can still be kept: extensions come each third of it.
const leastTTL = 10 * time.Millisecond

func (o GuardOptions) withDefaults() GuardOptions {
	o.LeastTTL = cmp.Or(o.LeastTTL, min(2*time.Second, cmp.Or(o.MostTTL, 2*time.Second)))
	o.MostTTL = cmp.Or(o.MostTTL, max(30*time.Second, o.LeastTTL))
	o.Wait = cmp.Or(o.Wait, 10*time.Second)
	o.Retry = cmp.Or(o.Retry, Backoff{Min: 50 * time.Millisecond, Max: time.Second, Jitter: 0.5})
	o.MaxHold = cmp.Or(o.MaxHold, 15*time.Minute)
	return o
}

// validate reports what can't work.
func (o GuardOptions) validate(l Locker) error {
	var faults []error
	refuse := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Errorf("recompute: "+format, args...))
		}
	}
	v := reflect.ValueOf(l)
	refuse(l == nil || v.Kind() == reflect.Pointer && v.IsNil(), "the locker is nil")
	for _, d := range []struct {
		name  string
		is    time.Duration
		least time.Duration
	}{
		{"TTL", o.TTL, leastTTL}, {"LeastTTL", o.LeastTTL, leastTTL}, {"MostTTL", o.MostTTL, leastTTL},
		{"Wait", o.Wait, time.Millisecond}, {"MinLeft", o.MinLeft, time.Millisecond}, {"MaxHold", o.MaxHold, leastTTL},
		{"Retry.Min", o.Retry.Min, time.Millisecond}, {"Retry.Max", o.Retry.Max, time.Millisecond},
	} {
		refuse(d.is != 0 && d.is < d.least, "GuardOptions.%s is %v, must be at least %v; a bare number means nanoseconds", d.name, d.is, d.least)
	}
	refuse(o.TTL != 0 && (o.LeastTTL != 0 || o.MostTTL != 0), "GuardOptions.TTL is %v, and has no use for bounds of an adaptive one", o.TTL)
	refuse(o.MostTTL != 0 && o.LeastTTL > o.MostTTL, "GuardOptions.LeastTTL is %v, must be at most MostTTL (%v)", o.LeastTTL, o.MostTTL)
	shortest := cmp.Or(o.TTL, o.withDefaults().LeastTTL)
	refuse(shortest > 0 && o.MinLeft >= safe(shortest), "GuardOptions.MinLeft is %v, must be less than what is left of a new lease of %v (%v)",
		o.MinLeft, shortest, safe(shortest))
	refuse(o.Retry != Backoff{} && !(o.Retry.Jitter > 0 && o.Retry.Jitter <= 1),
		"GuardOptions.Retry.Jitter is %v, must be above 0 and at most 1: without it those who wait ask all together, again and again", o.Retry.Jitter)
	return errors.Join(faults...)
}
