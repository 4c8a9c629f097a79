package cachetest

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// ErrChaos is in every error that a [Chaos] makes up.
var ErrChaos = errors.New("cachetest: chaos")

// ChaosOptions says what a [Chaos] does. The rates are chances from 0 (never) to 1 (always); with none it does nothing.
type ChaosOptions struct {
	// Seed decides what happens: the nth call of a step meets the same in each run. (Which call is the nth is up to
	// the callers.)
	Seed uint64

	// Steps are those that meet faults. Default: all.
	Steps []Step

	Refuse    float64 // of each call: it is not done, an error
	LoseReply float64 // of each call: it is done, and there is an error in place of its reply
	Delay     float64 // of each call: it is done up to Longest later
	Hang      float64 // of each call: it is not done, an error after Budget or with the end of its context
	Steal     float64 // of each grant and extension: the lease is gone right after it, and its holder is not told
	Mute      float64 // of each event: it is not told, against a watcher's promise that while connected it misses none
	Cut       float64 // of each event: nothing is told from it on, for Outage at most, and the watcher is disconnected

	// As is wrapped, besides ErrChaos, by the errors of what was refused or hung: [cache.ErrUnreachable], say.
	As error

	Longest time.Duration // default 100 ms
	Budget  time.Duration // default 250 ms
	Outage  time.Duration // default 1 s
}

// Step is what a fault can happen to.
type Step string

// The steps: those of a store, of a locker and of a lease, and events on their way to a watcher.
const (
	OnGet         Step = "get"
	OnGetPromptly Step = "get promptly"
	OnBegin       Step = "begin"
	OnSet         Step = "set"
	OnFail        Step = "fail"
	OnDelete      Step = "delete"
	OnAcquire     Step = "acquire"
	OnExtend      Step = "extend"
	OnRelease     Step = "release"
	OnEvent       Step = "event"
)

var steps = []Step{OnGet, OnGetPromptly, OnBegin, OnSet, OnFail, OnDelete, OnAcquire, OnExtend, OnRelease, OnEvent}

// Fault is what can happen to a step.
type Fault string

// The faults, one for each rate of [ChaosOptions].
const (
	Refused   Fault = "refused"
	ReplyLost Fault = "reply lost"
	Delayed   Fault = "delayed"
	Hung      Fault = "hung"
	Stolen    Fault = "stolen"
	Muted     Fault = "muted"
	WatchCut  Fault = "watch cut"
)

// Chaos is a [cache.Store] that does to another one what networks and servers do: for tests of what stands on it. Create
// one with [NewChaos]; several over one store are replicas, each with its own bad luck. It works in testing/synctest
// bubbles if the other store does.
//
// It is a [cache.Elector], [cache.Prompter] and [cache.Watcher] too. If the other store is none, it has a locker of this
// process, is never prompt and tells of nothing: all as if it were none either.
type Chaos struct {
	store cache.Store
	o     ChaosOptions
	local recompute.Local // if the store brings no locker

	mu      sync.Mutex
	calm    bool
	dice    map[Step]*rand.Rand
	counts  map[happening]int
	watches map[*watch]struct{}
}

type happening struct {
	fault Fault
	step  Step
}

// NewChaos returns a Chaos over store, which may be nil if only [Chaos.Around] is used. It rages from the start.
// [cache.New] reports what can't work in its options.
func NewChaos(store cache.Store, o ChaosOptions) *Chaos {
	o.Longest = cmp.Or(o.Longest, 100*time.Millisecond)
	o.Budget = cmp.Or(o.Budget, 250*time.Millisecond)
	o.Outage = cmp.Or(o.Outage, time.Second)
	return &Chaos{
		store:   store,
		o:       o,
		dice:    make(map[Step]*rand.Rand),
		counts:  make(map[happening]int),
		watches: make(map[*watch]struct{}),
	}
}

// Validate reports the options that can't work, the other store's too.
func (c *Chaos) Validate() error {
	var faults []error
	for name, rate := range map[string]float64{
		"Refuse": c.o.Refuse, "LoseReply": c.o.LoseReply, "Delay": c.o.Delay, "Hang": c.o.Hang,
		"Steal": c.o.Steal, "Mute": c.o.Mute, "Cut": c.o.Cut,
	} {
		if !(rate >= 0 && rate <= 1) { // asked so, NaN is none
			faults = append(faults, fmt.Errorf("cachetest: ChaosOptions.%s is %v, must be from 0 to 1", name, rate))
		}
	}
	for name, d := range map[string]time.Duration{"Longest": c.o.Longest, "Budget": c.o.Budget, "Outage": c.o.Outage} {
		if d < 0 {
			faults = append(faults, fmt.Errorf("cachetest: ChaosOptions.%s is %v, must be ≥ 0", name, d))
		}
	}
	for _, step := range c.o.Steps {
		if !slices.Contains(steps, step) {
			faults = append(faults, fmt.Errorf("cachetest: ChaosOptions.Steps has %q, allowed are %q", step, steps))
		}
	}
	if c.store == nil {
		faults = append(faults, errors.New("cachetest: the store of a Chaos is nil"))
	}
	if v, ok := c.store.(interface{ Validate() error }); ok {
		faults = append(faults, v.Validate())
	}
	return errors.Join(faults...)
}

// Calm ends the faults: from now on every step is done, and watchers that were cut off are connected. What has begun to
// hang or to be delayed takes its time.
func (c *Chaos) Calm() {
	for _, w := range c.setCalm(true) {
		w.reconnect()
	}
}

// Rage lets faults happen again.
func (c *Chaos) Rage() { c.setCalm(false) }

func (c *Chaos) setCalm(calm bool) (present []*watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = calm
	for w := range c.watches {
		present = append(present, w)
	}
	return present
}

// Count returns how often a fault happened, to these steps or, if none is given, to any.
func (c *Chaos) Count(f Fault, steps ...Step) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h, times := range c.counts {
		if h.fault == f && (len(steps) == 0 || slices.Contains(steps, h.step)) {
			n += times
		}
	}
	return n
}

// fate is what one call, or one event, meets.
type fate struct {
	step                Step
	refused, lost, hung bool
	stolen, muted, cut  bool
	delay, outage       time.Duration
}

// fate throws the dice of a step: always as many, so that one rate does not change what the others do.
func (c *Chaos) fate(step Step) fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calm || len(c.o.Steps) > 0 && !slices.Contains(c.o.Steps, step) {
		return fate{step: step}
	}
	r := c.dice[step]
	if r == nil {
		sum := fnv.New64a()
		sum.Write([]byte(step))
		r = rand.New(rand.NewPCG(c.o.Seed, sum.Sum64()))
		c.dice[step] = r
	}
	throw := func(rate float64) bool { return r.Float64() < rate }
	f := fate{
		step: step, refused: throw(c.o.Refuse), lost: throw(c.o.LoseReply), hung: throw(c.o.Hang),
		stolen: throw(c.o.Steal), muted: throw(c.o.Mute), cut: throw(c.o.Cut),
	}
	delayed, part := throw(c.o.Delay), r.Float64()
	f.outage = time.Duration(part * float64(c.o.Outage))
	if delayed {
		f.delay = time.Duration(part * float64(c.o.Longest))
	}
	return f
}

// note counts a fault and returns the error that tells of it.
func (c *Chaos) note(f Fault, step Step) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[happening{f, step}]++
	err := fmt.Errorf("%w: %s: %s", ErrChaos, step, f)
	if c.o.As != nil && (f == Refused || f == Hung) {
		err = fmt.Errorf("%w: %w", err, c.o.As)
	}
	return err
}
