package cache

import "context"

type formerKey struct{}

// Former returns, inside a computation of a cache of V, the value that it is to replace, if there is one: perhaps it
// still holds, and the computation need only say so by returning it. It may be one that is served no more (Policy.Keep).
// It must not be changed.
func Former[V any](ctx context.Context) (Result[V], bool) {
	i, ok := ctx.Value(formerKey{}).(item[V])
	if !ok || !i.found || i.absent {
		return Result[V]{}, false
	}
	return Result[V]{Value: i.value, Outcome: Stale, Age: max(0, i.now())}, true
}
