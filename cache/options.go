package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// Options configures a [Cache]. Only Policy.Fresh is required.
type Options[V any] struct {
	// Policy says how long a value is useful.
	Policy stale.Policy

	// Wait is the longest that a caller with nothing to serve waits for a value, its own computation included.
	// The computation goes on behind it. Default: Limit; at least 1 ms.
	Wait time.Duration

	// Limit is the longest that one computation may run; then its context ends, its lease is released and all
	// who wait for it get [recompute.ErrLimit], even if it goes on regardless. Default 30 s, at least 1 ms.
	Limit time.Duration

	// Lease is the longest silence of a process that computes before another may take over. It is renewed at a
	// third of it, so a computation may take much longer. Default 2 s, at least 30 ms.
	Lease time.Duration

	// Locker elects the process that computes. Default: the store's own, if it is an [Elector]; else each
	// process computes for itself.
	Locker recompute.Locker

	// Codec turns values into bytes. Default: msgpack, which keeps exported fields only, see [Msgpack].
	Codec Codec[V]

	// Clone copies a value for one more caller. Without it, each caller gets a copy decoded from the stored bytes,
	// unless V holds nothing that can be changed through a copy (strings, numbers, arrays and structs of such, or
	// values with a method Immutable()): that is always right but costs a decoding for each caller. If callers never
	// change their values, give func(v V) V { return v }.
	Clone func(V) V

	// Fallback answers in place of an error when there is nothing to serve, not even a stale value. It gets the
	// error that it stands for. Default: the error is returned. [ErrNotFound] is an answer, not an error here.
	Fallback func(ctx context.Context, key string, cause error) (V, error)

	// StaleIf says whether a stale value may stand in for an error. Default: for every error.
	StaleIf func(err error) bool

	// MaxComputes is the most computations that run at once in this process, those included that go on after their
	// Limit. Over it a stale value is served as it is, and other callers wait in turn, for at most Wait. What a
	// computation waits for in this cache counts as a part of it. Default 0: no bound.
	MaxComputes int

	// Near is how many bytes of last known values this process keeps, to serve them as stale while the store can't be
	// reached, and so that what is computed then is computed once in its lifetime. They take no part otherwise. A
	// value that was deleted is not served if this process has heard of it; it hears no more than the store can tell.
	// Default 32 MiB; -1: none.
	Near int

	// Trace tells what happens inside.
	Trace Trace
}

const (
	defaultLimit = 30 * time.Second
	defaultLease = 2 * time.Second
	leastLease   = 30 * time.Millisecond
	defaultNear  = 32 << 20
)

// complete fills in the defaults and reports all options that can't work.
func (o Options[V]) complete(store Store) (Options[V], error) {
	o.Limit = cmp.Or(o.Limit, defaultLimit)
	o.Lease = cmp.Or(o.Lease, defaultLease)
	o.Near = cmp.Or(o.Near, defaultNear)
	faults := []error{o.Policy.Validate()}
	for _, d := range []struct {
		name      string
		is, least time.Duration
		usual     any
	}{
		{"Limit", o.Limit, time.Millisecond, defaultLimit},
		{"Wait", o.Wait, time.Millisecond, "as Limit"},
		{"Lease", o.Lease, leastLease, defaultLease},
	} {
		if d.is != 0 && d.is < d.least {
			faults = append(faults, fmt.Errorf("cache: Options.%s is %v, must be at least %v (0: %v); a bare number means nanoseconds",
				d.name, d.is, d.least, d.usual))
		}
	}
	o.Wait = cmp.Or(o.Wait, o.Limit)
	if o.MaxComputes < 0 {
		faults = append(faults, fmt.Errorf("cache: Options.MaxComputes is %d, must be positive (0: no bound)", o.MaxComputes))
	}
	if o.Near < -1 {
		faults = append(faults, fmt.Errorf("cache: Options.Near is %d, must be a number of bytes (0: %d; -1: none)", o.Near, defaultNear))
	}
	if isNil(store) {
		faults = append(faults, errors.New("cache: the store is nil: give one, such as redisstore.New(…) or cache.NewMemory()"))
		return o, errors.Join(faults...)
	}
	if v, ok := store.(interface{ Validate() error }); ok {
		faults = append(faults, v.Validate())
	}
	if o.Locker == nil {
		o.Locker = lockerOf(store)
	}
	if o.Codec == nil {
		o.Codec = Msgpack[V]{}
	}
	return o, errors.Join(faults...)
}

func isNil(store Store) bool {
	if store == nil {
		return true
	}
	v := reflect.ValueOf(store)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

func lockerOf(store Store) recompute.Locker {
	if e, ok := store.(Elector); ok {
		return e.Locker()
	}
	return new(recompute.Local)
}
