// Package redislock grants leases from a Redis server.
//
// A lease is one key that holds a random token and expires by itself. Every step is one script that compares the
// token first, so that a step repeated after a lost reply does no harm, and nobody but the owner can extend or
// release. Asynchronous replication can lose a lease in a failover: two holders may then run at once, which costs
// an extra run. What the work writes needs a fence of its own.
package redislock

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

// Options configures a [Locker]. The zero value works.
type Options struct {
	Prefix  string        // put before every Redis key; default "bellwether"; no braces
	Budget  time.Duration // longest one step may take, whatever the client's own options; default [DefaultBudget]
	Channel string        // where releases and renewals are announced, see [Hub]; "": nowhere
}

// Locker grants leases from one Redis server (or cluster: each key lives on one server).
type Locker struct {
	steps   *Steps
	space   Space
	channel string
}

// New returns a Locker that uses rdb. It sends nothing yet.
func New(rdb redis.UniversalClient, o Options) *Locker {
	return On(NewSteps(rdb, StepOptions{Budget: o.Budget}), Space(cmp.Or(o.Prefix, "bellwether")), o.Channel)
}

// On returns a Locker that shares steps.
func On(steps *Steps, space Space, channel string) *Locker {
	return &Locker{steps: steps, space: space, channel: channel}
}

//go:embed acquire.lua
var acquireLua string
var acquireScript = redis.NewScript(acquireLua)

// Acquire asks once for the lease of key. It returns [recompute.ErrHeld] when another holder has it. When the
// answer does not come, the request is taken back, so that it leaves no lease even if it arrives later.
func (l *Locker) Acquire(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	if err := checkTTL(ttl); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h := l.lease(key, rand.Text(), ttl)
	got, err := l.steps.Write(ctx, acquireScript, []string{h.lock, h.mark}, h.token, ttl.Milliseconds()).Int()
	if err == nil && got == 1 {
		err = ctx.Err() // go-redis may not have noticed, and its caller has gone
	}
	switch {
	case errors.Is(err, ErrOpen), classify(ctx, err) == unserved: // nothing was sent, or taken
		return nil, fmt.Errorf("redislock: acquire: %w", err)
	case err != nil:
		h.takeBack()
		return nil, fmt.Errorf("redislock: acquire: %w", err)
	case got == 0:
		return nil, recompute.ErrHeld
	case got > 1:
		return nil, &recompute.HeldError{Left: time.Duration(min(got-2, int(math.MaxInt64/time.Millisecond))) * time.Millisecond}
	}
	return h, nil
}

// checkTTL refuses what Redis would read as "delete" or "for ever".
func checkTTL(ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("redislock: ttl of a lease is %v, must be at least 1ms", ttl)
	}
	return nil
}
