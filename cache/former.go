package cache

import "context"

// formerKey is the key under which a computation's context has the flight that it is of.
type formerKey struct{}

// Former returns, inside a computation of a cache of V, the value that it is to replace, if there is one: perhaps it
// still holds, and the computation need only say so by returning it. It may be one that is served no more (Policy.Keep).
// It must not be changed.
func Former[V any](ctx context.Context) (Result[V], bool) {
	r, ok := ctx.Value(formerKey{}).(*run[V])
	if !ok || !r.seen.found || r.seen.absent {
		return Result[V]{}, false
	}
	return Result[V]{Value: r.former(), Outcome: Stale, Age: max(0, r.seen.now())}, true
}

// former returns what the flight saw. A caller may have been served the same value, and be changing it.
func (r *run[V]) former() V {
	if !r.shared {
		if v, err := r.o.Codec.Decode(r.seen.payload); err == nil {
			return v
		}
	}
	return r.seen.value // each caller gets a copy of its own
}
