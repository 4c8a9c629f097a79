package recompute

import (
	"context"
	"fmt"
	"runtime/debug"
)

// PanicError is what callers get when the work panics.
type PanicError struct {
	Value any    // what was given to panic
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("recompute: the work panicked: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value given to panic, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Call runs f on a goroutine of its own, counted in t if that is not nil, and returns when f does or when ctx ends, whichever is
// first; then the error is the context's cause and f, should it ignore its context, goes on by itself. A panic
// of f becomes a [*PanicError], runtime.Goexit becomes [ErrGoexit].
func Call[V any](ctx context.Context, t *Tasks, f func(context.Context) (V, error)) (V, error) {
	type result struct {
		value V
		err   error
	}
	var zero V
	c, ok := t.enterCall()
	if !ok {
		return zero, ErrClosed
	}
	done := make(chan result, 1)
	go func() {
		defer t.leaveCall(c)
		r := result{err: ErrGoexit} // stays so if f neither returns nor panics
		defer func() {
			if p := recover(); p != nil {
				r = result{err: &PanicError{Value: p, Stack: debug.Stack()}}
			}
			done <- r
		}()
		r.value, r.err = f(context.WithValue(ctx, callKey{}, func() { t.overlook(c) }))
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	select { // both may have happened: a finished f has the better answer
	case r := <-done:
		return r.value, r.err
	default:
		return zero, context.Cause(ctx)
	}
}

type callKey struct{}

// Overlook says, from inside the f of a [Call] by the context that f was given, that f may last as long as it likes:
// [Tasks.Oldest] no longer counts it.
func Overlook(ctx context.Context) {
	if overlook, ok := ctx.Value(callKey{}).(func()); ok {
		overlook()
	}
}
