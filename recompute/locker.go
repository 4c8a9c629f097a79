package recompute

import (
	"context"
	"fmt"
	"time"
)

// Locker grants leases. Implementations pass [recomputetest.TestLocker].
//
// [recomputetest.TestLocker]: https://pkg.go.dev/github.com/bellwether-cache/bellwether/recompute/recomputetest
type Locker interface {
	// Acquire asks once for the lease of key and never waits for its holder: it returns [ErrHeld] when there
	// is one, as a [*HeldError] if it knows for how long. Any other error means that the locker could not tell.
	// ttl must be positive; the lease ends by itself after it. An Acquire that fails, or whose context ends, leaves
	// no lease behind.
	Acquire(ctx context.Context, key string, ttl time.Duration) (Lease, error)
}

// HeldError is an [ErrHeld] that says more.
type HeldError struct {
	Left time.Duration // until the lease ends, should its holder not extend it
}

func (e *HeldError) Error() string { return fmt.Sprintf("%v, for %v if not extended", ErrHeld, e.Left) }

// Is makes it an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Lease is a right to work that ends by itself.
type Lease interface {
	// Extend makes the lease last ttl from now. It returns [ErrLost] if the lease has ended or belongs to a
	// successor, and then changes nothing. Any other error means that the outcome is not known.
	Extend(ctx context.Context, ttl time.Duration) error
	// Release ends the lease if it is still ours and returns [ErrLost] if it is not.
	Release(ctx context.Context) error
}
