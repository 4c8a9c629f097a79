package recompute

import "context"

// Waker is a [Locker] that can tell when a key may be free, so that those who wait for it need not ask again and again.
type Waker interface {
	// Wake sends on woken when there is a reason to ask for key once more, until stop is called. Ask after calling Wake, not only
	// before, so that nothing is missed in between. A reason can be lost with a connection, and a lease that ends by itself gives
	// none: ask now and then all the same. woken is nil where nothing can be told.
	Wake(ctx context.Context, key string) (woken <-chan struct{}, stop func())
}
