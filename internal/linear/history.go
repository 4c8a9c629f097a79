// Package linear records what clients did to something they share, and says whether there is an order of all of it that
// explains what each of them saw.
//
// That order must keep what was over before something else began, so it is linearizability that is checked (Herlihy and
// Wing, 1990), for each object by itself. What the objects are, and what may be done to them, is in [Register] and [Row].
package linear

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// Step is something that was done to an object, with what its client was told. From a state of the object it leads to
// those that it returns: to none, if it can't have happened there.
type Step[S comparable] interface{ From(S) []S }

// Moment is a reading of a history's clock. No two are equal.
type Moment int64

// History is what was done to objects of one kind, all of which begin as the zero S. It is safe for concurrent use.
type History[S comparable] struct {
	clock atomic.Int64

	mu  sync.Mutex
	did map[string][]deed[S] // by object
}

// deed is a step between two moments.
type deed[S comparable] struct {
	step       Step[S]
	call, back Moment
	open       bool // it may have taken effect after back, or never
}

// settler is a step that leaves no effect to what was given up before it began.
type settler interface{ settles() }

// never is after all moments.
const never = Moment(1<<63 - 1)

// Now returns the moment; take one before each step.
func (h *History[S]) Now() Moment { return Moment(h.clock.Add(1)) }

// Did records a step that was begun at the moment call and has just come back.
func (h *History[S]) Did(object string, call Moment, step Step[S]) {
	h.add(object, deed[S]{step: step, call: call})
}

// Tried records a step whose outcome its client was not told: it may have taken effect, or may still do so, or not.
func (h *History[S]) Tried(object string, call Moment, step Step[S]) {
	h.add(object, deed[S]{step: step, call: call, open: true})
}

func (h *History[S]) add(object string, d deed[S]) {
	d.back = h.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.did == nil {
		h.did = make(map[string][]deed[S])
	}
	h.did[object] = append(h.did[object], d)
}

// Len returns how many steps were recorded.
func (h *History[S]) Len() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, did := range h.did {
		n += len(did)
	}
	return n
}

var (
	// ErrNoOrder says that no order of the steps explains what the clients saw.
	ErrNoOrder = errors.New("linear: not linearizable")
	// ErrUndecided says that none was found in time.
	ErrUndecided = errors.New("linear: too much to decide in time")
)

// Check looks for an order of the steps of each object, for so long, and returns [ErrNoOrder] with the steps of the
// first that has none. Call it outside of testing/synctest bubbles, or it takes all the time it needs.
func (h *History[S]) Check(patience time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, object := range slices.Sorted(maps.Keys(h.did)) {
		did := h.did[object]
		switch porcupine.CheckOperationsTimeout(model[S](), operations(did), patience) {
		case porcupine.Illegal:
			return fmt.Errorf("%w: %s:\n%s", ErrNoOrder, object, list(did))
		case porcupine.Unknown:
			return fmt.Errorf("%w: %d steps of %s in %v", ErrUndecided, len(did), object, patience)
		}
	}
	return nil
}

// world is the state of an object, and when the last settler that has taken effect began.
type world[S comparable] struct {
	object  S
	settled Moment
}

// model has deeds in place of inputs, and no outputs.
func model[S comparable]() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{world[S]{}} },
		Step: func(state, input, _ any) []any { return input.(deed[S]).from(state.(world[S])) },
	}
	return m.ToModel()
}

// from returns what a deed leads to.
func (d deed[S]) from(w world[S]) (next []any) {
	if d.open {
		next = append(next, w)
		if w.settled > d.back {
			return next
		}
	}
	settled := w.settled
	if _, settles := d.step.(settler); settles && !d.open {
		settled = max(settled, d.call)
	}
	for _, s := range d.step.From(w.object) {
		next = append(next, world[S]{s, settled})
	}
	return next
}

func operations[S comparable](did []deed[S]) (all []porcupine.Operation) {
	for _, d := range did {
		until := d.back
		if d.open {
			until = never
		}
		all = append(all, porcupine.Operation{Input: d, Call: int64(d.call), Return: int64(until)})
	}
	return all
}

// list shows the steps in the order in which they were begun.
func list[S comparable](did []deed[S]) string {
	lines := strings.Builder{}
	for _, d := range slices.SortedFunc(slices.Values(did), func(a, b deed[S]) int { return cmp.Compare(a.call, b.call) }) {
		fmt.Fprintf(&lines, "%6d…%-6d %T %+v\n", d.call, d.back, d.step, d.step)
	}
	return lines.String()
}
