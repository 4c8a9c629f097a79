package redislock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/linear"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

const (
	historyTTL  = 200 * time.Millisecond
	historyTime = 3 * time.Second
	clientCount = 6
)

// term is the time in which a client relied on a lease, and asked for it.
type term struct {
	asked, from, until time.Time
	fence              int64
}

// Steps of a register that keeps the highest fence it has seen.
type (
	accepted struct{ Fence int64 }
	refused  struct{ Fence int64 }
)

func (a accepted) From(seen int64) []int64 {
	if seen > a.Fence {
		return nil
	}
	return []int64{a.Fence}
}

func (r refused) From(seen int64) []int64 {
	if seen <= r.Fence {
		return nil
	}
	return []int64{seen}
}

// history is what six clients did.
type history struct {
	writes linear.History[int64]

	mu    sync.Mutex
	terms []term
}

// sleepy is a locker whose leases are not extended, as those of a process that is paused.
type sleepy struct{ recompute.Locker }

type sleepyLease struct{ recompute.Lease }

var errAsleepNow = errors.New("paused")

func (s sleepy) Acquire(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	lease, err := s.Locker.Acquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	return sleepyLease{lease}, nil
}

func (h sleepyLease) Fence() int64 { return h.Lease.(recompute.Fenced).Fence() }

func (h sleepyLease) Extend(context.Context, time.Duration) error { return errAsleepNow }

// variant is what may be wrong with a history, so that the checks can be seen to find it.
type variant struct {
	trust    time.Duration // that a client relies on its lease longer than it may
	careless bool          // the register accepts everything
}

// record has the clients contend for one lease and write to one register, through a proxy that does what meddle tells it to.
func record(t *testing.T, seed uint64, faults []faultproxy.Rule, v variant) *history {
	t.Helper()
	w := through(t)
	require.NoError(t, resource.Load(t.Context(), w.outside).Err())
	h := new(history)
	ctx, stop := context.WithTimeout(t.Context(), historyTime)
	defer stop()
	var all sync.WaitGroup
	for n := range clientCount {
		s := sleepy{Locker: must(to(t, w.proxy.Addr, func(o *redis.Options) { o.ContextTimeoutEnabled = true }), redislock.Options{})}
		g := guard(t, s, recompute.GuardOptions{TTL: historyTTL, Wait: time.Second, MinLeft: historyTTL / 4, Retry: recompute.Backoff{Min: 2 * time.Millisecond, Max: 20 * time.Millisecond, Jitter: 0.5}})
		register := to(t, w.proxy.Addr, func(o *redis.Options) { o.ContextTimeoutEnabled, o.MaxRetries = true, -1 })
		chance := rand.New(rand.NewPCG(seed, uint64(n)))
		all.Go(func() {
			for ctx.Err() == nil {
				asked := time.Now()
				_ = g.Do(ctx, "k", func(_ context.Context, held *recompute.Held) error { // what the context says is left unheard: the worst of holders
					h.relied(asked, held, v.trust, func() {
						time.Sleep(time.Duration(chance.IntN(4)) * time.Millisecond)
						if chance.IntN(6) == 0 {
							time.Sleep(historyTTL + 50*time.Millisecond) // paused
						}
					})
					fence, _ := held.Fence()
					h.write(ctx, register, fence, v.careless)
					return nil
				})
			}
		})
	}
	all.Go(func() { meddle(ctx, w.proxy, rand.New(rand.NewPCG(seed, 99)), faults) })
	all.Wait()
	w.proxy.KillAll()
	return h
}

// meddle has one fault after the other happen to the next script.
func meddle(ctx context.Context, p *faultproxy.Proxy, chance *rand.Rand, faults []faultproxy.Rule) {
	for len(faults) > 0 && ctx.Err() == nil {
		fault := faults[chance.IntN(len(faults))]
		fault.Nth = 1 + chance.IntN(5)
		hits := p.On(fault)
		for ctx.Err() == nil && hits.Count() == 0 {
			time.Sleep(time.Millisecond)
		}
		p.Heal()
		time.Sleep(time.Duration(chance.IntN(20)) * time.Millisecond)
	}
}

// relied records the time in which the holder may think that it is alone: until its lease ends by its own account, or it goes on to
// release it.
func (h *history) relied(asked time.Time, held *recompute.Held, trust time.Duration, work func()) {
	from := time.Now()
	until := from.Add(held.Left() + trust)
	work()
	if now := time.Now(); now.Before(until) {
		until = now
	}
	fence, _ := held.Fence()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.terms = append(h.terms, term{asked: asked, from: from, until: until, fence: fence})
}

func (h *history) write(ctx context.Context, register *redis.Client, fence int64, careless bool) {
	call := h.writes.Now()
	var took bool
	var err error
	if careless {
		took, err = true, register.Set(ctx, "register", fence, time.Minute).Err()
	} else {
		took, err = resource.EvalSha(ctx, register, []string{"register"}, fence).Bool()
	}
	switch {
	case err != nil:
		h.writes.Tried("register", call, accepted{fence})
	case took:
		h.writes.Did("register", call, accepted{fence})
	default:
		h.writes.Did("register", call, refused{fence})
	}
}

// check says what is wrong with what the clients saw.
func (h *history) check() error {
	slices.SortFunc(h.terms, func(a, b term) int { return a.from.Compare(b.from) })
	var faults []error
	for i, a := range h.terms {
		for _, b := range h.terms[i+1:] {
			if b.from.Before(a.until) {
				faults = append(faults, fmt.Errorf("two relied on the lease: %d until %v, %d from %v", a.fence, a.until, b.fence, b.from))
			}
			if a.from.Before(b.asked) && a.fence >= b.fence {
				faults = append(faults, fmt.Errorf("a fence went back: %d, then %d", a.fence, b.fence))
			}
		}
	}
	fences := h.fences()
	if len(slices.Compact(slices.Clone(fences))) != len(fences) {
		faults = append(faults, errors.New("a fence was given twice"))
	}
	return errors.Join(append(faults, h.writes.Check(20*time.Second))...)
}

func (h *history) fences() (fences []int64) {
	for _, t := range h.terms {
		fences = append(fences, t.fence)
	}
	slices.Sort(fences)
	return fences
}

func TestHoldersUnderFaultsNeverRelyOnALeaseTogetherAndTheirFencesKeepOrder(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]faultproxy.Rule{
		"none":              nil,
		"lost replies":      {{Marker: "evalsha", Do: faultproxy.DropReply}},
		"lost requests":     {{Marker: "evalsha", Do: faultproxy.DropRequest}},
		"stalls":            {{Marker: "evalsha", Do: faultproxy.StallReply}},
		"late requests":     {{Marker: "evalsha", Do: faultproxy.Delay, For: 90 * time.Millisecond}},
		"very late ones":    {{Marker: "evalsha", Do: faultproxy.Delay, For: historyTTL + 100*time.Millisecond}},
		"all, in any order": {{Do: faultproxy.DropReply}, {Do: faultproxy.StallReply}, {Do: faultproxy.DropRequest}, {Do: faultproxy.Delay, For: 150 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			h := record(t, seed, faults, variant{})
			t.Logf("seed %d: %d terms, %d writes", seed, len(h.terms), h.writes.Len())
			assert.Greater(t, len(h.terms), 3)
			assert.NoError(t, h.check())
		})
	}
}

// The checks find what they are there for.
func TestHistoriesThatAreWrongAreFound(t *testing.T) {
	t.Parallel()
	t.Run("a holder that relies on its lease for too long", func(t *testing.T) {
		t.Parallel()
		require.ErrorContains(t, record(t, 1, nil, variant{trust: 2 * historyTTL}).check(), "two relied on the lease")
	})
	t.Run("a register that accepts old fences", func(t *testing.T) {
		t.Parallel()
		require.ErrorIs(t, record(t, 2, nil, variant{careless: true}).check(), linear.ErrNoOrder)
	})
	t.Run("fences that do not grow", func(t *testing.T) {
		t.Parallel()
		h := record(t, 3, nil, variant{})
		require.NoError(t, h.check())
		last := slices.MaxFunc(h.terms, func(a, b term) int { return cmp.Compare(a.fence, b.fence) })
		i := slices.IndexFunc(h.terms, func(t term) bool { return t.fence == last.fence })
		h.terms[i].fence = h.terms[0].fence - 1 // a counter that began again
		require.ErrorContains(t, h.check(), "a fence went back")
		h.terms[i].fence = h.terms[0].fence
		require.ErrorContains(t, h.check(), "given twice")
	})
}
