package recompute_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

var errWork = errors.New("the work failed")

// crowd has many callers use a few keys of a flock in every way there is.
type crowd struct {
	*flock
	closing atomic.Bool
	running sync.Map // key → *atomic.Int64, the runs under way of a key that is never forgotten nor sealed
}

// moody is work that succeeds, fails, panics, ends its goroutine, or heeds its context or not.
func (c *crowd) moody(key string) recompute.Work[string] {
	return func(ctx context.Context, seal func()) (string, error) {
		n, _ := c.running.LoadOrStore(key, new(atomic.Int64))
		if key == "plain" {
			defer n.(*atomic.Int64).Add(-1)
			assert.EqualValues(c.t, 1, n.(*atomic.Int64).Add(1), "runs of one key at once")
		}
		c.runs.Add(1)
		pause(ctx, rand.N(20*time.Millisecond))
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if key == "shut" && rand.N(3) == 0 {
			seal()
			pause(ctx, rand.N(20*time.Millisecond))
		}
		switch rand.N(10) {
		case 0:
			panic(errWork)
		case 1, 2:
			return "", errWork
		}
		return key, nil
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// caller asks a number of times, now and then without patience, and judges what it is told.
func (c *crowd) caller(times int) {
	for range times {
		key := []string{"plain", "shut", "other"}[rand.N(3)]
		ctx, cancel := context.WithCancel(c.t.Context())
		switch rand.N(4) {
		case 0:
			ctx, cancel = context.WithTimeout(ctx, rand.N(30*time.Millisecond))
		case 1:
			time.AfterFunc(rand.N(30*time.Millisecond), cancel)
		}
		value, err := c.ask(ctx, key)
		switch {
		case err == nil:
			assert.Contains(c.t, []string{key, ""}, value)
		case errors.Is(err, errWork), errors.Is(err, recompute.ErrClosed) && c.closing.Load():
		case ctx.Err() != nil:
			assert.ErrorIs(c.t, err, ctx.Err())
		default:
			assert.NoError(c.t, err, "to a caller who stays")
		}
		cancel()
		time.Sleep(rand.N(5 * time.Millisecond))
	}
}

// ask asks in one of the ways in which one can.
func (c *crowd) ask(ctx context.Context, key string) (string, error) {
	switch rand.N(10) {
	case 0:
		return "", c.Go(ctx, key, nil, c.moody(key))
	case 1:
		if key == "shut" {
			c.Forget(key)
		}
	case 2:
		if f := c.Find(key); f != nil {
			value, err := f.Wait(ctx)
			if errors.Is(err, recompute.ErrAbandoned) {
				return c.Do(ctx, key, c.moody(key))
			}
			return value, err
		}
	}
	return c.Do(ctx, key, c.moody(key))
}

func TestAnyMixOfJoinsLeavesFailuresAndCloseAddsUp(t *testing.T) {
	for seed := range 20 {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *flock) {
				c := &crowd{flock: f}
				var all sync.WaitGroup
				for range 50 {
					all.Go(func() { c.caller(40) })
				}
				if seed%2 == 0 {
					time.Sleep(time.Second / 4)
					c.closing.Store(true)
					require.NoError(t, f.tasks.Close(time.Second))
				}
				all.Wait()
				time.Sleep(time.Second) // for flights that are owed
				t.Log(f.runs.Load(), "runs for", 50*40, "calls")
			})
		})
	}
}
