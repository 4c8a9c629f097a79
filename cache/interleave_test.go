package cache_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

// A play has three actors: one computes and publishes, one changes the source and deletes, one reads. Each has steps
// that it takes when it is told to.
const (
	computes = 'C' // has read the store, begins and reads the source, has the value, publishes, hears that it is stored
	deletes  = 'D' // changes the source and has the store delete, hears that it did
	reads    = 'R' // asks and has read the store, goes on by itself from there
)

var steps = map[rune]int{computes: 5, deletes: 2, reads: 2}

// orders yields every order in which the actors can take their steps.
func orders(left map[rune]int, so string) iter.Seq[string] {
	return func(yield func(string) bool) {
		over := true
		for _, who := range []rune{computes, deletes, reads} {
			if left[who] == 0 {
				continue
			}
			over = false
			left[who]--
			for order := range orders(left, so+string(who)) {
				if !yield(order) {
					left[who]++
					return
				}
			}
			left[who]++
		}
		if over {
			yield(so)
		}
	}
}

// stage is where the actors wait for their cues.
type stage map[rune]chan struct{}

type actor struct{}

func as(ctx context.Context, who rune) context.Context { return context.WithValue(ctx, actor{}, who) }

func (s stage) wait(who rune) { <-s[who] }

// cue lets an actor take its next step, if it waits to.
func (s stage) cue(who rune) {
	select {
	case s[who] <- struct{}{}:
	default: // it waits for another
	}
	synctest.Wait()
}

// before and after are what the store does on stage: it is done at once, and heard of at the actor's next step.
func (s stage) before(ctx context.Context, step string) error {
	if who, _ := ctx.Value(actor{}).(rune); who == computes && step == "set" {
		s.wait(who)
	}
	return nil
}

func (s stage) after(ctx context.Context, step string) error {
	switch who, _ := ctx.Value(actor{}).(rune); {
	case who == computes && (step == "get" || step == "set"), who == deletes && step == "delete", who == reads && step == "get":
		s.wait(who)
	}
	return nil
}

// scene is where a play is set: which replica the actors are at (the one who computes is at 0), whether the store tells
// of events and can be asked on a caller's goroutine, and how old the value is that it has.
type scene struct {
	deletesAt, readsAt int
	events, prompt     bool
	age                time.Duration // 0: there is none
}

func (s scene) String() string {
	return fmt.Sprintf("deletes at %d, reads at %d, events %t, prompt %t, age %v", s.deletesAt, s.readsAt, s.events, s.prompt, s.age)
}

// Guarantee 12; cases 70 and 71, on the same and the other replica, cold, behind an answer, and in the place of errors.
func TestAfterDeleteNothingFromBeforeIsServed(t *testing.T) {
	var all []string
	for order := range orders(steps, "") {
		all = append(all, order)
	}
	require.Len(t, all, 756) // 9! / (5! 2! 2!)
	for _, age := range []time.Duration{0, windows.Fresh, windows.Fresh + windows.WhileRevalidate} {
		for i := range 16 {
			s := scene{deletesAt: i & 1, readsAt: i >> 1 & 1, events: i>>2&1 == 0, prompt: i>>3 == 1, age: age}
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				for n, order := range all {
					if underRace && n%5 != i%5 { // which takes ten times as long; the others run without it
						continue
					}
					synctest.Test(t, func(t *testing.T) { s.play(t, order) })
					if t.Failed() {
						t.Fatal(order)
					}
				}
			})
		}
	}
}

func (s scene) play(t *testing.T, order string) {
	on := stage{computes: make(chan struct{}), deletes: make(chan struct{}), reads: make(chan struct{})}
	m := cache.NewMemory()
	store := &shim{Memory: m, prompt: s.prompt}
	shared := cache.Store(store)
	if !s.events {
		shared = quiet{store, m, store}
	}
	f := fleetOver(t, m, cache.Options[string]{Policy: windows}, shared, shared)
	if s.age > 0 {
		f.store("k", "v1")
		time.Sleep(s.age)
	}
	store.before, store.after = on.before, on.after

	source, deleted, askedAfter := "v1", false, false
	compute := func(ctx context.Context) (string, error) {
		v := source
		if ctx.Value(actor{}) == computes {
			on.wait(computes)
		}
		return v, nil
	}
	var computed, read reply
	go func() { computed = f.askFor(as(t.Context(), computes), 0, "k", compute) }()
	go func() {
		on.wait(deletes)
		source = "v2"
		assert.NoError(t, f.replicas[s.deletesAt].Delete(as(t.Context(), deletes), "k"))
		deleted = true
	}()
	go func() {
		on.wait(reads)
		askedAfter = deleted
		read = f.askFor(as(t.Context(), reads), s.readsAt, "k", compute)
	}()
	synctest.Wait()
	for _, who := range order {
		on.cue(who)
	}
	for _, gate := range on {
		close(gate)
	}
	time.Sleep(5 * time.Second)
	synctest.Wait()

	require.NoError(t, computed.err)
	require.NoError(t, read.err)
	require.Contains(t, []string{"v1", "v2"}, computed.Value)
	require.Contains(t, []string{"v1", "v2"}, read.Value)
	if askedAfter {
		require.Equal(t, "v2", read.Value, "asked after Delete had returned")
	}
	for i, c := range f.replicas {
		if r, err := c.Get(t.Context(), "k"); err == nil {
			require.Equal(t, "v2", r.Value, "it came back, sees replica %d", i)
		}
		values(t, "v2", []reply{f.askFor(t.Context(), i, "k", compute)})
	}
}
