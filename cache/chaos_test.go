package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/cachetest"
	"github.com/bellwether-cache/bellwether/stale"
)

// chaos is what happens to each replica's store and locker. Where reads fail no event is muted: a store that says that
// all are heard keeps to it, and while it does not answer that is what last known values rely on.
var chaos = map[string]cachetest.ChaosOptions{
	"steps are refused":        {Refuse: .3},
	"replies are lost":         {LoseReply: .3},
	"steps are late":           {Delay: .5},
	"steps hang":               {Hang: .2},
	"leases are stolen":        {Steal: .5},
	"events are muted":         {Mute: .5},
	"watchers are cut off":     {Cut: .1},
	"deletions fail":           {Refuse: .4, LoseReply: .3, Steps: []cachetest.Step{cachetest.OnDelete}},
	"writes fail":              {Refuse: .4, LoseReply: .3, Steps: []cachetest.Step{cachetest.OnBegin, cachetest.OnSet}},
	"nobody is told":           {Refuse: .3, LoseReply: .2, Mute: 1, Steps: []cachetest.Step{cachetest.OnBegin, cachetest.OnSet, cachetest.OnEvent}},
	"the locker is down":       {Refuse: 1, Steps: []cachetest.Step{cachetest.OnAcquire, cachetest.OnExtend, cachetest.OnRelease}},
	"no lease can be renewed":  {Refuse: 1, Steps: []cachetest.Step{cachetest.OnExtend}},
	"the store is down":        {Hang: 1},
	"nobody reaches the store": {Refuse: 1, As: cache.ErrUnreachable},
	"everything happens":       {Refuse: .05, LoseReply: .05, Delay: .2, Hang: .05, Steal: .1, Cut: .02},
}

var chaosSeeds = []uint64{1, 2, 3}

// eachChaos runs a test for each kind of chaos and each seed, in a bubble.
func eachChaos(t *testing.T, test func(t *testing.T, o cachetest.ChaosOptions)) {
	t.Helper()
	eachChaosOutside(t, func(t *testing.T, o cachetest.ChaosOptions) {
		synctest.Test(t, func(t *testing.T) { test(t, o) })
	})
}

// eachChaosOutside is eachChaos for a test that has bubbles of its own.
func eachChaosOutside(t *testing.T, test func(t *testing.T, o cachetest.ChaosOptions)) {
	t.Helper()
	for name, o := range chaos {
		t.Run(name, func(t *testing.T) {
			for _, o.Seed = range chaosSeeds {
				t.Run(fmt.Sprint("seed ", o.Seed), func(t *testing.T) { test(t, o) })
			}
		})
	}
}

// storm is a fleet whose replicas each have their own chaos, over a source whose rows have versions.
type storm struct {
	*fleet
	stores []*witness
	rows   map[string]*row
	fails  float64 // chance that a computation fails

	trials sync.Map     // by number, which is the value
	number atomic.Int64 // of the last trial
	spared atomic.Int64 // answers that nothing but the freedom without a verdict allows
}

// row is a row of the source. Whoever asks must not get less than was deleted before.
type row struct {
	version atomic.Int64
	deleted atomic.Int64   // as of which a Delete has returned
	by      []atomic.Int64 // the same, by each replica
}

// trial is one computation.
type trial struct {
	replica int
	version int64
	verdict atomic.Int64 // of the store on its result: one of those below
}

const (
	none = iota // it was not asked, or could not be reached
	accepted
	refused
)

// witness sees what the store says of each result.
type witness struct {
	*cachetest.Chaos
	trials sync.Map // by name and fence
}

type place struct {
	name  string
	fence cache.Fence
}

func (w *witness) Set(ctx context.Context, key cache.Key, write cache.Write) error {
	err := w.Chaos.Set(ctx, key, write)
	t, known := w.trials.Load(place{key.Name, write.Fence})
	switch {
	case !known:
	case err == nil:
		t.(*trial).verdict.Store(accepted)
	case errors.Is(err, cache.ErrFenced):
		t.(*trial).verdict.Store(refused)
	}
	return err
}

func newStorm(t *testing.T, o cachetest.ChaosOptions, c cache.Options[string]) *storm {
	t.Helper()
	const replicas = 3
	m := cache.NewMemory()
	s := &storm{rows: make(map[string]*row)}
	var stores []cache.Store
	for range replicas {
		o.Seed += 1000
		w := &witness{Chaos: cachetest.NewChaos(m, o)}
		s.stores, stores = append(s.stores, w), append(stores, w)
	}
	s.fleet = fleetOver(t, m, c, stores...)
	for i := range 3 {
		s.rows[fmt.Sprint("k", i)] = &row{by: make([]atomic.Int64, replicas)}
	}
	return s
}

// compute returns the computation of key for replica i.
func (s *storm) compute(i int, key string, dice *rand.Rand) cache.Compute[string] {
	takes, fails := time.Duration(dice.Int64N(int64(300*time.Millisecond))), dice.Float64() < s.fails
	return func(ctx context.Context) (string, error) {
		run := s.number.Add(1)
		this := &trial{replica: i, version: s.rows[key].version.Load()}
		s.trials.Store(run, this)
		if f := cache.FenceOf(ctx); f != 0 {
			s.stores[i].trials.Store(place{key, f}, this)
		}
		if err := pause(ctx, takes); err != nil {
			return "", err
		}
		if fails {
			return "", errDown
		}
		return fmt.Sprint(run), nil
	}
}

// read asks replica i and checks the answer.
func (s *storm) read(i int, key string, dice *rand.Rand) {
	row := s.rows[key]
	floor, own := row.deleted.Load(), row.by[i].Load()
	r := s.askFor(s.t.Context(), i, key, s.compute(i, key, dice))
	if r.err != nil {
		failed, ok := errors.AsType[*cache.FailedError](r.err)
		mine := errors.Is(r.err, errDown) || ok && failed.Text == errDown.Error()
		assert.True(s.t, s.fails > 0 && mine, "%s: %v", key, r.err)
		return
	}
	var run int64
	_, err := fmt.Sscan(r.Value, &run)
	require.NoError(s.t, err)
	made, _ := s.trials.Load(run)
	of := made.(*trial)
	switch {
	case of.version >= floor:
	case of.version >= own && free(i, of, r.Outcome):
		s.spared.Add(1)
	default:
		s.t.Errorf("%s: replica %d gave version %d (%v, made by %d, verdict %d) after %d had been deleted, by itself %d",
			key, i, of.version, r.Outcome, of.replica, of.verdict.Load(), floor, own)
	}
}

// free says whether an answer may be of before somebody else's deletion: a process that can't reach the store when it
// publishes has nobody to tell it of that, and gives its own callers what it has computed itself.
func free(i int, of *trial, o cache.Outcome) bool {
	return of.replica == i && of.verdict.Load() == none && (o == cache.Computed || o == cache.Collapsed)
}

// change changes the source and then deletes, through replica i.
func (s *storm) change(i int, key string) {
	row := s.rows[key]
	v := row.version.Add(1)
	if s.replicas[i].Delete(s.t.Context(), key) == nil {
		raise(&row.deleted, v)
		raise(&row.by[i], v)
	}
}

func raise(n *atomic.Int64, to int64) {
	for old := n.Load(); old < to && !n.CompareAndSwap(old, to); old = n.Load() {
	}
}

// blow has readers and writers at all replicas and keys for some time, and waits for them.
func (s *storm) blow(seed uint64, d time.Duration) {
	until := time.Now().Add(d)
	var all sync.WaitGroup
	each := func(longest time.Duration, do func(dice *rand.Rand)) {
		seed++
		dice := rand.New(rand.NewPCG(seed, 0))
		all.Go(func() {
			for time.Now().Before(until) {
				time.Sleep(time.Duration(dice.Int64N(int64(longest))))
				do(dice)
			}
		})
	}
	for key := range s.rows {
		for i := range s.replicas {
			for range 3 {
				each(50*time.Millisecond, func(dice *rand.Rand) { s.read(i, key, dice) })
			}
			each(300*time.Millisecond, func(*rand.Rand) { s.change(i, key) })
		}
	}
	all.Wait()
}

// calm ends the faults and checks that soon each value is computed once for its lifetime again.
func (s *storm) calm(fresh time.Duration) {
	for _, w := range s.stores {
		w.Calm()
	}
	s.fails = 0
	time.Sleep(3 * time.Second)
	before, began := s.number.Load(), time.Now()
	for range 50 {
		var all sync.WaitGroup
		for key := range s.rows {
			for i := range s.replicas {
				all.Go(func() { s.read(i, key, rand.New(rand.NewPCG(0, 0))) })
			}
		}
		all.Wait()
		time.Sleep(fresh / 10)
	}
	most := int64(time.Since(began)/fresh) + 1
	runs := s.number.Load() - before
	assert.LessOrEqual(s.t, runs, int64(len(s.rows))*most, "computations of %d keys in %d lifetimes", len(s.rows), most)
	assert.Positive(s.t, runs)
}

var lifetimes = []stale.Policy{
	{Fresh: 500 * time.Millisecond},
	{Fresh: 200 * time.Millisecond, WhileRevalidate: 200 * time.Millisecond, IfError: time.Second},
	{Fresh: time.Minute, Negative: time.Minute},
}

// Whatever happens on the way to the store and the locker: no caller gets an error of theirs, nor what was deleted
// before it asked, and when it is over the fleet computes once for each lifetime, and has left nothing behind.
func TestTroubleOfTheStoreAndTheLockerIsNotTheCallers(t *testing.T) {
	eachChaos(t, func(t *testing.T, o cachetest.ChaosOptions) {
		policy := lifetimes[o.Seed%uint64(len(lifetimes))]
		s := newStorm(t, o, cache.Options[string]{Policy: policy, Lease: 200 * time.Millisecond})
		s.blow(o.Seed, 4*time.Second)
		s.calm(policy.Fresh)
		t.Logf("%d calls, %d computations, %d answers without a verdict that are of before a deletion elsewhere",
			s.calls.Load(), s.number.Load(), s.spared.Load())
	})
}

// The same for a source that fails: its errors are all that callers get.
func TestTroubleOfTheStoreAddsNothingToThatOfTheSource(t *testing.T) {
	eachChaos(t, func(t *testing.T, o cachetest.ChaosOptions) {
		policy := stale.Policy{Fresh: 200 * time.Millisecond, Cooldown: 100 * time.Millisecond}
		s := newStorm(t, o, cache.Options[string]{Policy: policy, Lease: 200 * time.Millisecond})
		s.fails = .3
		s.blow(o.Seed, 4*time.Second)
		s.calm(policy.Fresh)
	})
}
