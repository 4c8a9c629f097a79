package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// passFor is how long a name whose answer must not be stored is computed without an election.
const passFor = 5 * time.Second

// verdict is what a computation says about its result.
type verdict struct {
	noStore atomic.Bool
	lasting atomic.Pointer[stale.Policy]
	pass    func(pause time.Duration) bool
	pause   atomic.Int64 // for which pass says that each process is on its own
	alone   atomic.Bool  // pass has worked
}

type verdictKey struct{}

func verdictOf(ctx context.Context) *verdict {
	v, _ := ctx.Value(verdictKey{}).(*verdict)
	return v
}

// NoStore says, from inside a computation, that its result must not be stored. All who wait for it, in every process,
// are released together; for 5 s the key is computed by each process for itself, so that nobody queues for an answer
// that will not be there. It returns false if ctx is not that of a computation.
func NoStore(ctx context.Context) bool {
	v := verdictOf(ctx)
	if v != nil {
		v.noStore.Store(true)
	}
	return v != nil
}

// Lasting says, from inside a computation, how long its result is useful, in place of Options.Policy. Here Fresh may
// be 0: then the value is stored, but who asks for it computes; and if all windows are 0 it is as [NoStore]. A window may
// be the rest of a longer one, and as short as that is. Cooldown and Beta remain those of Options.Policy. It returns an
// error, and changes nothing, if a window is negative or ctx is not that of a computation.
func Lasting(ctx context.Context, p stale.Policy) error {
	v := verdictOf(ctx)
	if v == nil {
		return errors.New("cache: Lasting: the context is not that of a computation")
	}
	checked := p
	for _, window := range []*time.Duration{&checked.Fresh, &checked.WhileRevalidate, &checked.IfError, &checked.Keep} {
		if *window >= 0 {
			*window = max(*window, time.Millisecond)
		}
	}
	if err := checked.Validate(); err != nil {
		return fmt.Errorf("cache: Lasting: %w", err)
	}
	v.lasting.Store(&p)
	return nil
}

// ErrPass says that a computation keeps its result to itself, see [Pass]. Begin of a [Store] returns it, and a Failed
// event carries it, while the answers of a key must not be stored.
var ErrPass = errors.New("cache: the answer must not be stored")

// Pass says, from inside a computation, that nobody is to get its result: it will be handed over in some other way, or
// not at all. All callers who wait for it get [ErrPass] at once, and for the given time (0: no longer) the key is computed by each
// process for itself. The computation goes on; its context ends from now on only when the cache is closed. It
// returns false if ctx is not that of a computation, or has ended.
func Pass(ctx context.Context, pause time.Duration) bool {
	v := verdictOf(ctx)
	return v != nil && v.pass(max(pause, 0))
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
