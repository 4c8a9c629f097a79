package recompute_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

// takes has work run that takes so long.
func takes(t *testing.T, g *recompute.Guard, d time.Duration, result error) {
	t.Helper()
	require.Equal(t, result, g.Do(t.Context(), "k", func(_ context.Context, h *recompute.Held) error {
		assert.Equal(t, g.TTL(), h.TTL())
		time.Sleep(d)
		return result
	}))
}

func TestATTLGrowsAndShrinksWithWhatRunsTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, new(recompute.Local), recompute.GuardOptions{})
		assert.Equal(t, 10*time.Second, g.TTL(), "before the first run")
		takes(t, g, 4*time.Second, nil)
		assert.Equal(t, 6*time.Second, g.TTL())
		for range 300 {
			takes(t, g, 2*time.Second, nil)
		}
		assert.Equal(t, 3*time.Second, g.TTL(), "what was long ago is forgotten")
		for range 2 {
			takes(t, g, 10*time.Second, nil)
		}
		assert.Equal(t, 3*time.Second, g.TTL(), "less than one in a hundred")
		takes(t, g, 10*time.Second, nil)
		assert.Equal(t, 15*time.Second, g.TTL())
		p99, runs := g.Measured()
		assert.Equal(t, 10*time.Second, p99)
		assert.Equal(t, 256, runs)
	})
}

func TestATTLStaysWithinItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, new(recompute.Local), recompute.GuardOptions{LeastTTL: time.Second, MostTTL: 4 * time.Second})
		assert.Equal(t, 4*time.Second, g.TTL())
		takes(t, g, time.Millisecond, nil)
		assert.Equal(t, time.Second, g.TTL())
		takes(t, g, time.Hour/10, nil)
		assert.Equal(t, 4*time.Second, g.TTL())
	})
}

func TestRunsThatFailAtOnceDoNotShortenATTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, new(recompute.Local), recompute.GuardOptions{})
		takes(t, g, 4*time.Second, nil)
		for range 300 {
			takes(t, g, time.Millisecond, errWork)
		}
		assert.Equal(t, 6*time.Second, g.TTL())
		takes(t, g, 8*time.Second, errWork)
		assert.Equal(t, 12*time.Second, g.TTL(), "one that was slow was slow")
	})
}

func TestAFixedTTLStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, new(recompute.Local), recompute.GuardOptions{TTL: 3 * time.Second})
		takes(t, g, time.Minute, nil)
		assert.Equal(t, 3*time.Second, g.TTL())
	})
}

func TestOptionsOfAGuardThatCanNotWorkAreRefused(t *testing.T) {
	l := new(recompute.Local)
	for want, c := range map[string]struct {
		l recompute.Locker
		o recompute.GuardOptions
	}{
		"locker is nil":                                                       {nil, recompute.GuardOptions{}},
		"the locker is nil":                                                   {(*recompute.Local)(nil), recompute.GuardOptions{}},
		"TTL is 1ms, must be at least 10ms":                                   {l, recompute.GuardOptions{TTL: time.Millisecond}},
		"TTL is -1s, must be at least":                                        {l, recompute.GuardOptions{TTL: -time.Second}},
		"LeastTTL is -1s":                                                     {l, recompute.GuardOptions{LeastTTL: -time.Second}},
		"MostTTL is -1s":                                                      {l, recompute.GuardOptions{MostTTL: -time.Second}},
		"Wait is -1s, must be at least":                                       {l, recompute.GuardOptions{Wait: -time.Second}},
		"MinLeft is -1s, must be at least":                                    {l, recompute.GuardOptions{MinLeft: -time.Second}},
		"MaxHold is -1s, must be at least":                                    {l, recompute.GuardOptions{MaxHold: -time.Second}},
		"TTL is 1s, and has no use for bounds":                                {l, recompute.GuardOptions{TTL: time.Second, MostTTL: time.Minute}},
		"LeastTTL is 10s, must be at most":                                    {l, recompute.GuardOptions{LeastTTL: 10 * time.Second, MostTTL: time.Second}},
		"MinLeft is 1s, must be less than":                                    {l, recompute.GuardOptions{TTL: time.Second, MinLeft: time.Second}},
		"MinLeft is 2s, must be less than":                                    {l, recompute.GuardOptions{MinLeft: 2 * time.Second}},
		"without it those who wait ask all":                                   {l, recompute.GuardOptions{Retry: recompute.Backoff{Min: time.Second}}},
		"Jitter is 2, must be":                                                {l, recompute.GuardOptions{Retry: recompute.Backoff{Jitter: 2}}},
		"Retry.Min is -1s, must be at least 1ms":                              {l, recompute.GuardOptions{Retry: recompute.Backoff{Min: -time.Second, Jitter: 1}}},
		"Retry.Max is -1ns, must be at least":                                 {l, recompute.GuardOptions{Retry: recompute.Backoff{Max: -1, Jitter: 1}}},
		"TTL is 60ns, must be at least 10ms; a bare number means nanoseconds": {l, recompute.GuardOptions{TTL: 60}},
		"Wait is 60ns, must be at least 1ms; a bare number means nanoseconds": {l, recompute.GuardOptions{Wait: 60}},
		"MinLeft is 60ns, must be at least 1ms":                               {l, recompute.GuardOptions{MinLeft: 60}},
		"MaxHold is 60ns, must be at least 10ms":                              {l, recompute.GuardOptions{MaxHold: 60}},
		"Retry.Min is 60ns, must be at least 1ms":                             {l, recompute.GuardOptions{Retry: recompute.Backoff{Min: 60, Jitter: 1}}},
		"Retry.Max is 60ns, must be at least 1ms":                             {l, recompute.GuardOptions{Retry: recompute.Backoff{Max: 60, Jitter: 1}}},
		"LeastTTL is 9ms, must be at least 10ms":                              {l, recompute.GuardOptions{LeastTTL: 9 * time.Millisecond}},
		"MinLeft is 900ms, must be less than":                                 {l, recompute.GuardOptions{MostTTL: 900 * time.Millisecond, MinLeft: 900 * time.Millisecond}},
	} {
		_, err := recompute.NewGuard(c.l, c.o)
		assert.ErrorContains(t, err, want)
	}
	for _, o := range []recompute.GuardOptions{
		{}, {MostTTL: time.Second}, {LeastTTL: time.Minute}, {TTL: 10 * time.Millisecond}, {Retry: recompute.Backoff{Jitter: 0.1}},
	} {
		_, err := recompute.NewGuard(l, o)
		assert.NoError(t, err)
	}
}
