// Package redislock grants leases from a Redis server.
//
// A lease is one key that holds a random token and expires by itself. Every step is one script that compares the
// token first, so that a step repeated after a lost reply does no harm, and nobody but the owner can extend or
// release. For the name n under the prefix p:
//
//	p:lease:{n}        the lease; p:l:{n} if it is for a computation (see [On])
//	p:lease:{n}:token  for a while, where an acquire was taken back whose outcome is not known
//	p:fence:{n}        the number of the last grant, of a [Locker] whose leases have one
//	p:queue:{n}        the processes that wait, while some do
//	p:member           since when the server has kept what it was told, if it is one of a [Quorum], and the highest number of a
//	                   grant; this key has no ttl
//	p:leases           the channel on which releases and renewals are announced
//
// # What it does not guarantee
//
// A holder that is paused can go on when its lease has ended: what the work writes needs a guard of its own, for example the fence.
// Replication is asynchronous: a failover can lose a lease that was granted just before, and then two hold it. That costs an extra
// run; their fences are in order all the same, as they go by the clocks of servers, unless the new server's clock is behind by more
// than the time between the two grants. [Options].Replicas has a lease count only once replicas have it too, which makes that rarer
// but does not rule it out: a replica that did not acknowledge may be promoted, or one that did may restart empty. So does a server
// that restarts without persistence. Where that matters, let a database's constraint decide.
//
// Processes that wait are woken in turn. Should the first have died while it waited, the second asks a tenth of a second later; should that
// have died too, the next is who asks first by itself, after a pause of [recompute.GuardOptions].Retry (a second and a half at most, by
// default).
//
// A server's clock that is set forward ends leases early; one that is set back makes them last longer. Holders go by a clock of their own.
//
// # Rights
//
// A user of Redis needs [Rights] on keys and channels that begin with the prefix. Without subscribe nobody is woken by a release,
// and asks now and then instead; without publish nobody else is; without zadd and zpopmin all processes that wait are woken together, and
// not one in its turn.
//
// Without eval, steps are transactions, of three round trips instead of one, and without turns: they need [RightsWithoutScripts]. Redis
// takes no transaction while it is out of memory: then leases can neither be extended nor released, and end with their ttl.
//
// Where the server has the commands, an extension or release without eval is one of them instead: SET … IFEQ (Redis 8.4, Valkey 8.1),
// which needs no right but set, and DELEX … IFEQ (Redis 8.4) or DELIFEQ (Valkey 9), which needs the right +delex or +delifeq as well.
// That is no part of the constant, as a server that doesn't know a command refuses all rights that are given with it. What a server
// refuses once, a locker doesn't ask of it again.
package redislock

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

// What the user of a [Locker] with the prefix "bellwether" needs, as ACL SETUSER takes it. On Redis 6.0 leave the channels (&…) out.
const (
	Rights = "~bellwether:* &bellwether:* +eval +evalsha +mget +set +del +pexpire +pttl +time +publish +subscribe +zadd +zpopmin"

	RightsWithoutScripts = "~bellwether:* &bellwether:* +watch +unwatch +multi +exec +get +set +del +exists +pexpire +pttl +time +publish +subscribe"
)

// Options configures a [Locker]. The zero value works.
type Options struct {
	Prefix   string        // put before every Redis key; default "bellwether"; no braces
	Budget   time.Duration // longest one step may take, whatever the client's own options; default [DefaultBudget]
	Channel  string        // where releases and renewals are announced, see [Hub]; default prefix:leases
	Unfenced bool          // leases carry no number ([recompute.Fenced]), and need one key less
	Replicas int           // a lease is granted or extended only once so many replicas have it as well; default 0; see [ErrReplicas]
}

// Locker grants leases from one Redis server (or cluster: each key lives on one server). It is a [recompute.Waker] where the client
// can subscribe, which a ring can't.
type Locker struct {
	steps    *Steps
	space    Space
	role     string // of its leases' keys
	channel  string
	fenced   bool
	queues   bool
	replicas int
	ear      *ear // nil: nobody can be woken
	mode     mode
}

// fenceMemory is how long the number of the last grant is remembered after the lease. It matters only if the server's clock is set back.
const fenceMemory = time.Hour

// New returns a Locker that uses rdb. It sends nothing yet. Options that can't work are an error.
//
// A client of its own, with a few connections, keeps leases alive when the pool of the application has no connection left.
func New(rdb redis.UniversalClient, o Options) (*Locker, error) {
	if err := o.validate(rdb); err != nil {
		return nil, err
	}
	space := Space(cmp.Or(o.Prefix, "bellwether"))
	l := On(NewSteps(rdb, StepOptions{Budget: o.Budget}), space, cmp.Or(o.Channel, string(space)+":leases"))
	l.role, l.fenced, l.queues, l.replicas = leases, !o.Unfenced, true, o.Replicas
	return l, nil
}

func (o Options) validate(rdb redis.UniversalClient) error {
	var faults []error
	if v := reflect.ValueOf(rdb); rdb == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		faults = append(faults, errors.New("redislock: the client is nil"))
	}
	if o.Budget != 0 && o.Budget < time.Millisecond {
		faults = append(faults, fmt.Errorf("redislock: Options.Budget is %v, must be at least 1ms (0: %v); a bare number means nanoseconds", o.Budget, DefaultBudget))
	}
	if o.Replicas < 0 {
		faults = append(faults, fmt.Errorf("redislock: Options.Replicas is %d, must not be negative", o.Replicas))
	}
	if _, ring := rdb.(*redis.Ring); ring && o.Replicas > 0 {
		faults = append(faults, errors.New("redislock: Options.Replicas can't be asked of a ring"))
	}
	return errors.Join(append(faults, Space(o.Prefix).validate("Options.Prefix"))...)
}

// The roles of leases' keys: a job may have the name of something that is computed, and may ask for it.
const (
	leases       = "lease"
	computations = "l"
)

// On returns a Locker that shares steps. Its leases are for computations: they carry no fence, as what is written is numbered by other
// means, and exclude none of a Locker that [New] returns, whatever the prefix.
func On(steps *Steps, space Space, channel string) *Locker {
	return &Locker{steps: steps, space: space, role: computations, channel: channel, ear: newEar(steps, channel)}
}

// Wake tells when a lease of key is released. The first who waits has the locker subscribe; a minute after the last it unsubscribes.
func (l *Locker) Wake(_ context.Context, key string) (woken <-chan struct{}, stop func()) {
	if l.ear == nil {
		return nil, func() {}
	}
	return l.ear.wait(key)
}

// Close ends the subscription, if there is one; from then on nobody is woken. Leases are not touched.
func (l *Locker) Close() error {
	if l.ear == nil {
		return nil
	}
	return l.ear.tasks.Close(time.Second)
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
	got, err := h.acquire(ctx)
	if err == nil && got.granted {
		err = ctx.Err() // go-redis may not have noticed, and its caller has gone
	}
	switch {
	case errors.Is(err, ErrOpen), classify(ctx, err) == unserved: // nothing was sent, or taken
		return nil, fmt.Errorf("redislock: acquire: %w", err)
	case err != nil:
		h.takeBack()
		return nil, fmt.Errorf("redislock: acquire: %w", err)
	case got.granted && l.fenced:
		return &fencedLease{h, got.fence}, nil
	case got.granted:
		return h, nil
	case got.left < 0:
		return nil, recompute.ErrHeld
	}
	return nil, &recompute.HeldError{Left: got.left}
}

// fencedLease is a lease with a number.
type fencedLease struct {
	*lease
	fence int64
}

// Fence returns the number of this grant.
func (h *fencedLease) Fence() int64 { return h.fence }

// answer is what the server says to a question for a lease.
type answer struct {
	granted bool
	fence   int64
	unsure  bool          // there may have been higher fences
	left    time.Duration // of another's; below 0: unknown
}

// read reads what acquire.lua returns.
func read(reply any) answer {
	switch got := reply.(type) {
	case []any:
		if len(got) == 2 {
			fence, _ := got[1].(int64)
			return answer{granted: true, fence: fence}
		}
	case int64:
		if got == 1 {
			return answer{granted: true}
		}
		return answer{left: time.Duration(min(got-2, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond}
	}
	return answer{left: -1}
}

// checkTTL refuses what Redis would read as "delete" or "for ever".
func checkTTL(ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("redislock: ttl of a lease is %v, must be at least 1ms; a bare number means nanoseconds", ttl)
	}
	return nil
}
