package cache

import (
	"context"
	"errors"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

var (
	// ErrNotFound is the negative answer. A computation returns it, or wraps it, to say that there is no value for
	// the key; that is remembered for Policy.Negative and given to callers in its place. A store returns it when
	// it has no entry.
	ErrNotFound = errors.New("cache: not found")
	// ErrFenced is a store's refusal to write what was computed before a later write or deletion of the key.
	ErrFenced = errors.New("cache: a later write or deletion stands")
	// ErrTooBig is a store's refusal of a value over its maximum size.
	ErrTooBig = errors.New("cache: the value is over the store's maximum size")
	// ErrUnreachable is in the errors of a store that, as far as it can tell, nobody can reach: the connection is
	// refused, or there is no answer. One whose connection broke can perhaps be reached by others.
	ErrUnreachable = errors.New("cache: the store can't be reached")
	// ErrRefused is in the errors of a store that answers but takes no writes.
	ErrRefused = errors.New("cache: the store takes no writes")
	// ErrClosed says that the cache was closed.
	ErrClosed = recompute.ErrClosed
	// ErrBusy says that Options.Wait ran out with nothing to serve.
	ErrBusy = recompute.ErrBusy
	// ErrLimit says that a computation ran longer than Options.Limit.
	ErrLimit = recompute.ErrLimit
)

// Key says where an entry is. One name can have an entry for each schema, so that two versions of a program that
// share a store keep out of each other's way; they are deleted together.
type Key struct {
	Name   string // never empty, at most 512 bytes, any bytes
	Schema string // 16 hexadecimal digits that stand for the type of the values
}

// Fence numbers the writes of a name. Numbers only grow; 0 is none. Where the store has a clock they are its
// microseconds, so that they go on growing after all memory of a name is gone.
type Fence int64

// Entry is what a store keeps for a key.
type Entry struct {
	Data  []byte        // the envelope; the receiver may keep but not change it
	Fence Fence         // of the write that put it there
	Age   time.Duration // since then, on the store's clock; rather too high than too low by the time a step takes
}

// Write is what a store is asked to put.
type Write struct {
	Data  []byte        // nil: remove the entry
	Fence Fence         // from Begin
	TTL   time.Duration // positive: the entry is gone after it
	Sole  bool          // remove the entries of other schemas too, and refuse computations that began before Fence
}

// Failure is a computation that failed.
type Failure struct {
	Fence Fence         // from Begin
	Text  string        // of its error; stores may cut it short
	Pause time.Duration // how long no other attempt is to be made
	Pass  bool          // it did not fail, but its result must not be stored: for Pause each process is on its own
}

// FailedError is the failure of a computation of another process, or of an earlier one of this process while
// Policy.Cooldown lasts. Of the error itself only the text is left.
type FailedError struct{ Text string }

func (e *FailedError) Error() string { return "cache: the computation failed: " + e.Text }

// Store remembers. Every method has a time budget of its own. Errors wrap [ErrUnreachable] and [ErrRefused] where they
// apply: only then can last known values stand in for the store. Implementations pass [cachetest.TestStore].
//
// [cachetest.TestStore]: https://pkg.go.dev/github.com/bellwether-cache/bellwether/cache/cachetest
type Store interface {
	// Get returns the entry of key as it stands at some moment after the call, or ErrNotFound. What stands there
	// but is no entry of the store's is returned as it is: the cache can tell.
	Get(ctx context.Context, key Key) (Entry, error)

	// Begin takes a number for a computation of key that may last hold, and returns the entry that stands if it
	// is newer than seen (else a zero Entry).
	Begin(ctx context.Context, key Key, seen Fence, hold time.Duration) (Fence, Entry, error)

	// Set writes for key. It returns ErrFenced, and changes nothing, if since w.Fence was taken the name was deleted,
	// or a Write with a higher number was done for key, or one with Sole for the name; or if the store can't
	// exclude that, having lost its memory of the name. It may return ErrTooBig. Any other error: outcome unknown.
	Set(ctx context.Context, key Key, w Write) error

	// Fail remembers for f.Pause that a computation of key failed: until then Begin takes no number and returns a
	// *FailedError, or ErrPass. Processes that wait for its value are told even if Pause is 0. A later Set or Delete ends it;
	// after one since f.Fence was taken, it does nothing and returns ErrFenced.
	Fail(ctx context.Context, key Key, f Failure) error

	// Delete removes all entries of the names and refuses computations of them, if they had begun before ago (0: until
	// now). All names are tried; the error joins what failed.
	Delete(ctx context.Context, ago time.Duration, names ...string) error
}

// Elector is a Store that brings its own [recompute.Locker]. Leases are taken on names.
type Elector interface{ Locker() recompute.Locker }

// Prompter is a Store that can be asked on the caller's own goroutine, which saves a hit from waiting for another one.
type Prompter interface {
	// GetPromptly is Get, except that it gives up with an error, after 50 ms at most, where Get would keep its caller.
	// That is no reason to call the store unreachable, but a refused connection is.
	GetPromptly(ctx context.Context, key Key) (Entry, error)
}

// Watcher is a Store that tells of what others do, as it happens.
type Watcher interface {
	// Watch calls tell with each event until ctx ends. tell is quick and calls nothing of the store.
	Watch(ctx context.Context, tell func(Event))
}

// Event is something that happened to a name.
type Event struct {
	Kind  EventKind
	Key   Key   // the name; the schema for Published and Failed
	Entry Entry // for Published what was written, or its fence alone, or nothing; for Failed only the age
	Err   error // for Failed a *FailedError or ErrPass; for Disconnected the reason
}

// EventKind says what happened.
type EventKind uint8

const (
	Published    EventKind = iota + 1 // an entry was written
	Failed                            // a computation failed
	Deleted                           // all entries were deleted
	Released                          // the lease ended
	Renewed                           // the lease's holder is alive
	Connected                         // from now on all events are heard; earlier ones may have been missed
	Disconnected                      // events are no longer heard
)
