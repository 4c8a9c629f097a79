package recompute

import (
	"context"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Group merges callers: while a flight for a key is in the air, whoever asks for that key joins it.
// Create one with [NewGroup]; it ends with its Tasks.
type Group[V any] struct {
	tasks  *Tasks
	limit  time.Duration
	merged singleflight.Group

	mu      sync.Mutex
	flights map[string]*Flight[V] // those that newcomers may join
	count   uint64
}

// Work is what a flight does. It calls seal once its result is about to become visible elsewhere: from then on
// newcomers start a flight of their own.
type Work[V any] func(ctx context.Context, seal func()) (V, error)

// NewGroup returns a Group whose flights run on tasks and last limit at most (then they end with [ErrLimit], even
// if the work ignores its context).
func NewGroup[V any](tasks *Tasks, limit time.Duration) *Group[V] {
	return &Group[V]{tasks: tasks, limit: limit, flights: make(map[string]*Flight[V])}
}

// Do joins the flight for key, or starts one that does work, and waits for it.
// Its errors are those of [Group.Start] and [Flight.Wait]. A ctx that has ended starts nothing.
func (g *Group[V]) Do(ctx context.Context, key string, work Work[V]) (V, error) {
	var zero V
	switch {
	case ctx.Err() != nil:
		return zero, ctx.Err()
	case inside(ctx, g, key):
		return zero, ErrRecursive
	}
	f, err := g.start(ctx, key, nil, work, func(f *Flight[V]) { f.waiting++ })
	if err != nil {
		return zero, err
	}
	return f.wait(ctx)
}

// Go starts a flight for key that is owed even if nobody waits for it, unless one is in the air. It does not wait.
func (g *Group[V]) Go(ctx context.Context, key string, note any, work Work[V]) error {
	_, err := g.start(ctx, key, note, work, func(f *Flight[V]) { f.owed = true })
	return err
}

// Start returns the flight for key that is in the air, or starts one with a note to those who join it. The flight
// keeps the values of ctx but not its end. After close it returns [ErrClosed].
func (g *Group[V]) Start(ctx context.Context, key string, note any, work Work[V]) (*Flight[V], error) {
	return g.start(ctx, key, note, work, func(*Flight[V]) {})
}

// start finds or starts a flight and boards it in one step: in between it could be abandoned by the others.
func (g *Group[V]) start(ctx context.Context, key string, note any, work Work[V], board func(*Flight[V])) (*Flight[V], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.flights[key]; f != nil {
		board(f)
		return f, nil
	}
	if !g.tasks.enter() {
		return nil, ErrClosed
	}
	g.count++
	f := &Flight[V]{Note: note, group: g, key: key, name: strconv.FormatUint(g.count, 36)}
	g.flights[key] = f
	board(f)
	f.takeOff(ctx, work)
	return f, nil
}

// Find returns the flight for key that is in the air and may be joined, or nil.
func (g *Group[V]) Find(key string) *Flight[V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flights[key]
}

// Forget makes newcomers start a flight of their own. Those who are aboard stay.
func (g *Group[V]) Forget(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.flights, key)
}

// InFlight returns how many keys have a flight that may be joined.
func (g *Group[V]) InFlight() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.flights)
}
