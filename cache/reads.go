package cache

import (
	"context"
	"errors"
	"sync"

	"github.com/bellwether-cache/bellwether/recompute"
)

// reads merges the store reads of a key without ever giving a caller a read that was sent before it asked: such a
// read may have missed a deletion that the caller knows of. While one read is under way, all newcomers wait for the
// next one, which they share.
type reads[T any] struct {
	mu    sync.Mutex
	turns map[string]*turn[T] // the turn under way of each name

	lone sync.Pool // turns that were taken alone

	unwanted func(T) // is given a result that nobody waits for any more
}

type turn[T any] struct {
	read   func() T
	result T
	err    error         // in place of a result
	done   chan struct{} // closed once result or err is there
	next   *turn[T]      // for those who came after the read was sent
	want   int           // guarded by reads.mu: callers who have not cancelled
}

// alone reads on the caller's own goroutine if no read of name is under way, and says whether that worked. Those who
// come meanwhile wait for the next read, as ever.
func (r *reads[T]) alone(tasks *recompute.Tasks, name string, read func() (T, bool)) (result T, ok bool) {
	t := r.take(name)
	if t == nil {
		return result, false
	}
	defer func() {
		if next := r.after(name, t); next != nil {
			r.start(tasks, name, next)
		}
		t.next = nil
		r.lone.Put(t) // nobody else has it any more
	}()
	return read()
}

// take begins a turn if none is under way.
func (r *reads[T]) take(name string) *turn[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns[name] != nil {
		return nil
	}
	if r.turns == nil {
		r.turns = make(map[string]*turn[T])
	}
	t, ok := r.lone.Get().(*turn[T])
	if !ok {
		t = new(turn[T])
	}
	r.turns[name] = t
	return t
}

// start does the turns from t on, or tells those who wait for them that it can't.
func (r *reads[T]) start(tasks *recompute.Tasks, name string, t *turn[T]) {
	err := tasks.Go(func(context.Context) { r.run(tasks, name, t) })
	for ; err != nil && t != nil; t = r.after(name, t) {
		t.err = err
		close(t.done)
	}
}

// do returns the result of a read that is sent after the call. Only the first caller of a turn has its read sent.
func (r *reads[T]) do(ctx context.Context, tasks *recompute.Tasks, name string, read func() T) (T, error) {
	t, err := r.join(tasks, name, read)
	if err == nil {
		select {
		case <-t.done:
			return t.result, t.err
		case <-ctx.Done():
			if r.leave(t, ctx.Err()) {
				return t.result, t.err
			}
			err = ctx.Err()
		}
	}
	var zero T
	return zero, err
}

// probe sends a read that nobody waits for, if none is under way.
func (r *reads[T]) probe(tasks *recompute.Tasks, name string, read func() T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns[name] == nil {
		_, _ = r.send(tasks, name, read, 0)
	}
}

// leave takes a caller off a turn, unless its result is there: then it says so. Whoever's time is up still wants it.
func (r *reads[T]) leave(t *turn[T], why error) (there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-t.done:
		return true
	default:
	}
	if errors.Is(why, context.Canceled) {
		t.want--
	}
	return false
}

func (r *reads[T]) join(tasks *recompute.Tasks, name string, read func() T) (*turn[T], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if under := r.turns[name]; under != nil {
		if under.next == nil {
			under.next = &turn[T]{read: read, done: make(chan struct{})}
		}
		under.next.want++
		return under.next, nil
	}
	return r.send(tasks, name, read, 1)
}

// send begins a turn that so many callers want; r is locked.
func (r *reads[T]) send(tasks *recompute.Tasks, name string, read func() T, want int) (*turn[T], error) {
	t := &turn[T]{read: read, done: make(chan struct{}), want: want}
	if err := tasks.Go(func(context.Context) { r.run(tasks, name, t) }); err != nil {
		return nil, err
	}
	if r.turns == nil {
		r.turns = make(map[string]*turn[T])
	}
	r.turns[name] = t
	return t, nil
}

// run does turn after turn until nobody waits for a next one.
func (r *reads[T]) run(tasks *recompute.Tasks, name string, t *turn[T]) {
	defer func() {
		if t == nil {
			return
		}
		t.err = recompute.ErrGoexit // of a store, codec or hook that isn't ours
		r.deliver(t)
		if next := r.after(name, t); next != nil {
			r.start(tasks, name, next)
		}
	}()
	for t != nil {
		t.result = t.read()
		if !r.deliver(t) {
			r.unwanted(t.result)
		}
		t = r.after(name, t)
	}
}

// deliver hands out the result and says whether somebody wants it.
func (r *reads[T]) deliver(t *turn[T]) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(t.done)
	return t.want > 0
}

func (r *reads[T]) after(name string, t *turn[T]) *turn[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.next == nil {
		delete(r.turns, name)
	} else {
		r.turns[name] = t.next
	}
	return t.next
}
