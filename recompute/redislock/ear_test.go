package redislock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

const (
	channel = "flock"
	quiet   = 200 * time.Millisecond // the silence after which hubs under test ask themselves
)

// newHub returns a hub that is sooner uneasy than others.
func newHub(c redis.UniversalClient) *redislock.Hub {
	h := redislock.NewHub(redislock.NewSteps(c, redislock.StepOptions{}), channel)
	h.Silence(quiet)
	return h
}

// ear is a listener.
type ear struct {
	t     testing.TB
	leave func() // and wait until Listen has returned

	mu    sync.Mutex
	heard []redislock.Message
	errs  []error // that came with them
	read  int     // how much of it the test has been through
}

// listen has a listener on the hub until the end of the test, or until it leaves.
func listen(t testing.TB, h *redislock.Hub) *ear {
	t.Helper()
	e := &ear{t: t}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	left := make(chan struct{})
	go func() {
		defer close(left)
		h.Listen(ctx, e.hear)
	}()
	e.leave = func() {
		t.Helper()
		cancel()
		select {
		case <-left:
		case <-time.After(soon):
			t.Error("Listen goes on although its context has ended")
			<-left
		}
	}
	t.Cleanup(e.leave)
	return e
}

func (e *ear) hear(m redislock.Message, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard, e.errs = append(e.heard, m), append(e.errs, err)
}

// next waits until the ear hears a message of kind, skips whatever came before it, and returns it.
func (e *ear) next(kind redislock.Kind) (m redislock.Message, err error) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		for e.read < len(e.heard) {
			m, err = e.heard[e.read], e.errs[e.read]
			e.read++
			if m.Kind == kind {
				return true
			}
		}
		return false
	}, 6*time.Second, time.Millisecond, "%q was not heard", string(kind))
	return m, err
}

// all returns what was heard until now.
func (e *ear) all() []redislock.Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.heard)
}

// say publishes m and returns how many heard it.
func say(t testing.TB, c *redis.Client, m redislock.Message) int64 {
	t.Helper()
	n, err := c.Publish(t.Context(), channel, m.Encode()).Result()
	require.NoError(t, err)
	return n
}

// subscribers asserts that the channel has so many soon.
func subscribers(t testing.TB, c *redis.Client, n int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		return assert.ObjectsAreEqual(n, c.PubSubNumSub(t.Context(), channel).Val()[channel])
	}, 5*time.Second, time.Millisecond, "%d subscribers", n)
}
