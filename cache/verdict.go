package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// passFor is how long a name whose answer must not be stored is computed without an election.
const passFor = 5 * time.Second

type verdictKey struct{}

// NoStore says, from inside a computation, that its result must not be stored. All who wait for it, in every process,
// are released together; for 5 s the key is computed by each process for itself, so that nobody queues for an answer
// that will not be there. It returns false if ctx is not that of a computation.
func NoStore(ctx context.Context) bool {
	v, ok := ctx.Value(verdictKey{}).(*atomic.Bool)
	if ok {
		v.Store(true)
	}
	return ok
}

// Own marks an error as the caller's own: it says nothing about the key. It is not given to others who waited for the
// same computation (they elect again), nor remembered for Policy.Cooldown.
func Own(err error) error {
	if err == nil {
		return nil
	}
	return &ownError{err}
}

type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }

// own says whether an error is of the caller whose computation ran: it said so, or its computation ended because it
// heeds the caller's context instead of the one it was given.
func (q *call[V]) own(err error) bool {
	if q == nil || err == nil {
		return false
	}
	mark := (*ownError)(nil)
	if errors.As(err, &mark) {
		return true
	}
	for _, ours := range []error{recompute.ErrLimit, recompute.ErrClosed, recompute.ErrAbandoned, recompute.ErrLost} {
		if errors.Is(err, ours) {
			return false
		}
	}
	return q.ctx.Err() != nil && errors.Is(err, q.ctx.Err())
}
