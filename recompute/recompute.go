// Package recompute makes one caller do the work that many want done.
//
// Inside a process a [Group] merges callers into one flight. Between processes a [Locker] grants one of them a
// [Lease], kept alive by [Hold] while the work runs; a [Guard] does both in one call. The two are independent: a Group without a Locker protects
// one process, a Locker without a Group elects one worker in a fleet.
//
// A lease saves work; it does not guarantee exclusion. A paused holder can run at the same time as its successor,
// so whatever the work writes needs a guard of its own (a fence, a unique constraint, an idempotency key).
package recompute

import "errors"

var (
	// ErrHeld says that another holder has the lease now.
	ErrHeld = errors.New("recompute: the lease is held by another")
	// ErrLost says that the lease expired or belongs to a successor. It is also the cause of the end of the
	// context that [Hold] gives to the work.
	ErrLost = errors.New("recompute: the lease is lost")
	// ErrNotRun says that a [Guard] did not run the work, since it got no lease; the error that wraps it names the reason.
	ErrNotRun = errors.New("recompute: the work was not run")
	// ErrBusy says that the time a caller was willing to wait ran out with nothing to serve. The work goes on:
	// a later call may find its result.
	ErrBusy = errors.New("recompute: no value within the time to wait")
	// ErrLimit is the cause of the end of a flight that ran longer than its limit.
	ErrLimit = errors.New("recompute: the work ran longer than its limit")
	// ErrAbandoned is the cause of the end of a flight whose callers have all cancelled.
	ErrAbandoned = errors.New("recompute: every caller has gone")
	// ErrClosed says that the owner of the work was closed.
	ErrClosed = errors.New("recompute: closed")
	// ErrRecursive refuses work that waits for itself: a key asked for from inside its own flight.
	ErrRecursive = errors.New("recompute: work asked for its own key")
	// ErrGoexit says that the work ended its goroutine with runtime.Goexit (t.FailNow does that).
	ErrGoexit = errors.New("recompute: the work called runtime.Goexit")
)
