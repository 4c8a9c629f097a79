package cachetest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/cachetest"
	"github.com/bellwether-cache/bellwether/recompute"
)

var key = cache.Key{Name: "n", Schema: "00000000000000a1"}

const long = time.Minute

// steps are all that can be done to a store and a lease, each with a way to see whether it was done.
var steps = map[cachetest.Step]struct {
	do   func(ctx context.Context, s *subject) error
	done func(s *subject) bool // nil: it leaves no trace
}{
	cachetest.OnGet: {do: func(ctx context.Context, s *subject) error { _, err := s.chaos.Get(ctx, key); return err }},
	cachetest.OnGetPromptly: {do: func(ctx context.Context, s *subject) error {
		_, err := s.chaos.GetPromptly(ctx, key)
		return err
	}},
	cachetest.OnBegin: {
		do: func(ctx context.Context, s *subject) error {
			_, _, err := s.chaos.Begin(ctx, cache.Key{Name: "unknown"}, 0, long)
			return err
		},
		done: func(s *subject) bool { // of a name of which nothing was known, the number is the time in µs, and one
			taken := cache.Write{Data: []byte("v"), Fence: cache.Fence(time.Now().UnixMicro() + 1), TTL: long}
			return s.memory.Set(s.ctx, cache.Key{Name: "unknown"}, taken) == nil
		},
	},
	cachetest.OnSet: {
		do: func(ctx context.Context, s *subject) error {
			return s.chaos.Set(ctx, key, cache.Write{Data: []byte("new"), Fence: s.written.Fence, TTL: long})
		},
		done: func(s *subject) bool { return s.stands() == "new" },
	},
	cachetest.OnFail: {
		do: func(ctx context.Context, s *subject) error {
			return s.chaos.Fail(ctx, key, cache.Failure{Fence: s.written.Fence, Text: "no", Pause: long})
		},
		done: func(s *subject) bool { _, _, err := s.memory.Begin(s.ctx, key, 0, long); return err != nil },
	},
	cachetest.OnDelete: {
		do:   func(ctx context.Context, s *subject) error { return s.chaos.Delete(ctx, 0, key.Name) },
		done: func(s *subject) bool { return s.stands() == "" },
	},
	cachetest.OnExtend: {
		do: func(ctx context.Context, s *subject) error { return s.lease.Extend(ctx, time.Hour) },
		done: func(s *subject) bool {
			_, err := s.memory.Locker().Acquire(s.ctx, key.Name, long)
			held, ok := errors.AsType[*recompute.HeldError](err)
			return ok && held.Left > 2*long
		},
	},
	cachetest.OnRelease: {
		do:   func(ctx context.Context, s *subject) error { return s.lease.Release(ctx) },
		done: func(s *subject) bool { return s.free(key.Name) },
	},
	cachetest.OnAcquire: {do: func(ctx context.Context, s *subject) error {
		_, err := s.chaos.Locker().Acquire(ctx, "another", long)
		return err
	}},
}

// subject is a Chaos over a Memory in which an entry stands and a lease is held, and in which all is calm until then.
type subject struct {
	ctx     context.Context
	memory  *cache.Memory
	chaos   *cachetest.Chaos
	written cache.Write
	lease   recompute.Lease
}

func newSubject(t *testing.T, o cachetest.ChaosOptions) *subject {
	t.Helper()
	m := cache.NewMemory()
	s := &subject{ctx: t.Context(), memory: m, chaos: cachetest.NewChaos(m, o)}
	require.NoError(t, s.chaos.Validate())
	s.chaos.Calm()
	fence, _, err := s.chaos.Begin(s.ctx, key, 0, long)
	require.NoError(t, err)
	s.written = cache.Write{Data: []byte("old"), Fence: fence, TTL: long}
	require.NoError(t, s.chaos.Set(s.ctx, key, s.written))
	s.lease, err = s.chaos.Locker().Acquire(s.ctx, key.Name, long)
	require.NoError(t, err)
	s.chaos.Rage()
	return s
}

func (s *subject) stands() string {
	e, _ := s.memory.Get(s.ctx, key)
	return string(e.Data)
}

func (s *subject) free(name string) bool {
	lease, err := s.memory.Locker().Acquire(s.ctx, name, long)
	return err == nil && lease.Release(s.ctx) == nil
}

func eachStep(t *testing.T, o cachetest.ChaosOptions, holds func(t *testing.T, s *subject, step cachetest.Step)) {
	t.Helper()
	for step := range steps {
		t.Run(string(step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { holds(t, newSubject(t, o), step) })
		})
	}
}

func TestARefusedStepIsNotDone(t *testing.T) {
	eachStep(t, cachetest.ChaosOptions{Refuse: 1}, func(t *testing.T, s *subject, step cachetest.Step) {
		require.ErrorIs(t, steps[step].do(s.ctx, s), cachetest.ErrChaos)
		if done := steps[step].done; done != nil {
			assert.False(t, done(s))
		}
		assert.True(t, s.free("another"))
		assert.Equal(t, 1, s.chaos.Count(cachetest.Refused, step))
		assert.Equal(t, 1, s.chaos.Count(cachetest.Refused))
	})
}

func TestAnErrorIsAlsoWhatItWasToldToBe(t *testing.T) {
	for o, as := range map[*cachetest.ChaosOptions]bool{{Refuse: 1}: true, {Hang: 1}: true, {LoseReply: 1}: false} {
		o.As = cache.ErrUnreachable
		eachStep(t, *o, func(t *testing.T, s *subject, step cachetest.Step) {
			err := steps[step].do(s.ctx, s)
			require.ErrorIs(t, err, cachetest.ErrChaos)
			assert.Equal(t, as, errors.Is(err, cache.ErrUnreachable))
		})
	}
}

func TestAStepWhoseReplyIsLostIsDone(t *testing.T) {
	eachStep(t, cachetest.ChaosOptions{LoseReply: 1}, func(t *testing.T, s *subject, step cachetest.Step) {
		require.ErrorIs(t, steps[step].do(s.ctx, s), cachetest.ErrChaos)
		if done := steps[step].done; done != nil {
			assert.True(t, done(s))
		}
		assert.True(t, s.free("another"), "an Acquire that fails leaves no lease")
		assert.Equal(t, 1, s.chaos.Count(cachetest.ReplyLost, step))
	})
}

func TestADelayedStepIsDoneLater(t *testing.T) {
	eachStep(t, cachetest.ChaosOptions{Delay: 1, Longest: time.Second}, func(t *testing.T, s *subject, step cachetest.Step) {
		began := time.Now()
		require.NoError(t, steps[step].do(s.ctx, s))
		assert.Positive(t, time.Since(began))
		assert.LessOrEqual(t, time.Since(began), time.Second)
		if done := steps[step].done; done != nil {
			assert.True(t, done(s))
		}
		assert.Equal(t, 1, s.chaos.Count(cachetest.Delayed, step))
	})
}

func TestAStepThatHangsEndsWithItsBudgetOrItsContext(t *testing.T) {
	eachStep(t, cachetest.ChaosOptions{Hang: 1, Budget: 10 * time.Second}, func(t *testing.T, s *subject, step cachetest.Step) {
		began := time.Now()
		err := steps[step].do(s.ctx, s)
		require.ErrorIs(t, err, cachetest.ErrChaos)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		if step == cachetest.OnGetPromptly {
			assert.LessOrEqual(t, time.Since(began), 50*time.Millisecond)
			return
		}
		assert.Equal(t, 10*time.Second, time.Since(began))

		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		defer cancel()
		err = steps[step].do(ctx, s)
		require.ErrorIs(t, err, cachetest.ErrChaos)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 11*time.Second, time.Since(began))
		if done := steps[step].done; done != nil {
			assert.False(t, done(s))
		}
		assert.Equal(t, 2, s.chaos.Count(cachetest.Hung, step))
	})
}

func TestAStolenLeaseIsItsNextHoldersAndTheFirstFindsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(t, cachetest.ChaosOptions{Steal: 1})
		require.NoError(t, s.lease.Extend(s.ctx, long), "nobody tells")
		robbed, err := s.chaos.Locker().Acquire(s.ctx, key.Name, long)
		require.NoError(t, err)
		next, err := s.memory.Locker().Acquire(s.ctx, key.Name, long)
		require.NoError(t, err)
		for _, lost := range []recompute.Lease{s.lease, robbed} {
			require.ErrorIs(t, lost.Extend(s.ctx, long), recompute.ErrLost)
			require.ErrorIs(t, lost.Release(s.ctx), recompute.ErrLost)
		}
		require.NoError(t, next.Extend(s.ctx, long))
		require.NoError(t, next.Release(s.ctx))
		assert.Equal(t, 1, s.chaos.Count(cachetest.Stolen, cachetest.OnExtend))
		assert.Equal(t, 1, s.chaos.Count(cachetest.Stolen, cachetest.OnAcquire))
	})
}

// play does the same things to a Chaos in the same order and returns what became of each.
func play(t *testing.T, o cachetest.ChaosOptions) (replies []string) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(t, o)
		for range 20 {
			for _, step := range []cachetest.Step{cachetest.OnGet, cachetest.OnSet, cachetest.OnAcquire, cachetest.OnDelete} {
				began := time.Now()
				err := steps[step].do(s.ctx, s)
				replies = append(replies, fmt.Sprint(step, err, time.Since(began)))
			}
		}
	})
	return replies
}

var everything = cachetest.ChaosOptions{Seed: 1, Refuse: .2, LoseReply: .2, Delay: .2, Hang: .2, Steal: .2, Mute: .2, Cut: .2}

func TestTheSameSeedDoesTheSame(t *testing.T) {
	other := everything
	other.Seed = 2
	assert.Equal(t, play(t, everything), play(t, everything))
	assert.NotEqual(t, play(t, everything), play(t, other))
}

func TestOnlyTheStepsThatWereNamedMeetFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(t, cachetest.ChaosOptions{Refuse: 1, Steps: []cachetest.Step{cachetest.OnBegin}})
		_, err := s.chaos.Get(s.ctx, key)
		require.NoError(t, err)
		_, _, err = s.chaos.Begin(s.ctx, key, 0, long)
		require.ErrorIs(t, err, cachetest.ErrChaos)
	})
}

// Whoever calls must be ready for the errors of the contract and for ErrChaos, and for no others.
func TestFaultsMakeNoOtherErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSubject(t, everything)
		names := []cachetest.Step{cachetest.OnGet, cachetest.OnGetPromptly, cachetest.OnBegin, cachetest.OnSet, cachetest.OnDelete,
			cachetest.OnAcquire, cachetest.OnExtend, cachetest.OnRelease}
		failed := 0
		for range 500 {
			err := steps[names[rand.N(len(names))]].do(s.ctx, s)
			if errors.Is(err, cachetest.ErrChaos) {
				failed++
				continue
			}
			for _, said := range []error{cache.ErrNotFound, cache.ErrFenced, recompute.ErrHeld, recompute.ErrLost} {
				if errors.Is(err, said) {
					err = nil
				}
			}
			require.NoError(t, err)
		}
		assert.Positive(t, failed)
	})
}
