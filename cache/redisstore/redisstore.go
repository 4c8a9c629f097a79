// Package redisstore keeps entries in a Redis server.
//
// Every key it writes has a TTL. For the name n under the prefix p:
//
//	p:v:{n}  the entries, a hash: one field for each schema
//	p:f:{n}  the fences, a hash: the last number taken, that of the last deletion, the last failure
//	p:l:{n}  the lease, a string
//	p:events a channel on which writes, deletions, releases and renewals are announced
//
// The keys of a name share a cluster slot. A hit is one command. Writes are scripts that may run twice without harm.
//
// Primaries alone are asked, whatever the client prefers. Their replicas are behind: a failover loses what was confirmed
// just before it, be it a lease, an entry or a deletion. After a lost deletion the entry is served again, until it runs out
// or is deleted once more. A computation whose number was lost publishes nothing. Where that is too little, let
// Redis refuse writes that no replica can take (min-replicas-to-write): then Delete fails, and is repeated.
//
// While a slot is moved to another primary, steps on its names may be refused. Those names are then computed by each process
// for itself, and a deletion fails, and is repeated.
//
// The servers of a [redis.Ring] know nothing of each other. One that comes back with its memory, after its keys had been
// given to another, brings back what was deleted meanwhile; so does one that gets them back a second time.
package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
	"github.com/redis/go-redis/v9"
)

// Rights are what a user of Redis needs, as ACL SETUSER takes them, for the default prefix. Without subscribe or publish waiting is
// polling; without another one each process is on its own, which cache.Trace.StoreFailed tells.
const Rights = "~bellwether:* &bellwether:* +eval +evalsha +mget +set +del +pexpire +pttl +time +publish +subscribe " +
	"+hget +hset +hdel +hkeys +hlen +type"

// Options configures a [Store]. The zero value works.
type Options struct {
	Prefix   string        // put before every Redis key and channel; default "bellwether"; no braces
	Budget   time.Duration // longest one step may take, whatever the client's own options; default 150 ms
	MaxBytes int           // values (encoded) over it are not stored; default 8 MiB

	// Breaker is told when Redis is no longer asked, since it has failed, and when it is again: "link open", "link
	// half-open", "link closed", and the same for "writes", when it answers but takes none. It must be quick.
	Breaker func(state string, err error)
}

const (
	defaultMaxBytes = 8 << 20
	// pushed is the size up to which an entry goes along with its announcement, in bytes. Every process hears it.
	pushed = 2 << 10
	// longestText is how much of an error's text is remembered, in bytes.
	longestText = 512
	// memory is how long a deletion is remembered. It matters only if the server's clock is set back: without
	// memory of a name, every computation that began before is refused.
	memory = time.Minute
)

// Store is a [cache.Store] on Redis, with a locker and announcements of its own. Use one for each prefix in a process:
// caches that share it share its subscription.
type Store struct {
	rdb    redis.UniversalClient
	o      Options
	steps  *redislock.Steps
	space  redislock.Space
	hub    *redislock.Hub
	locker *redislock.Locker
	clock  clock
}

// New returns a Store that uses rdb: a client, a cluster client, a ring. It sends nothing yet. What can't work in its
// options is reported by [cache.New].
//
// A client of its own, with a few connections, keeps leases alive when the pool of the application has no connection left: one that stays
// without for as long as a lease has lost it, and another process computes as well.
func New(rdb redis.UniversalClient, o Options) *Store {
	o.Prefix = cmp.Or(o.Prefix, "bellwether")
	o.Budget = cmp.Or(o.Budget, redislock.DefaultBudget)
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	if v := reflect.ValueOf(rdb); v.Kind() == reflect.Pointer && v.IsNil() {
		rdb = nil // a nil client in an interface
	}
	_, single := rdb.(*redis.Client)
	channel := o.Prefix + ":events"
	steps := redislock.NewSteps(rdb, redislock.StepOptions{Budget: o.Budget, Breaker: o.Breaker})
	space := redislock.Space(o.Prefix)
	return &Store{
		rdb:    rdb,
		o:      o,
		steps:  steps,
		space:  space,
		hub:    redislock.NewHub(steps, channel),
		locker: redislock.On(steps, space, channel),
		clock:  clock{off: !single},
	}
}

// Validate reports the options that can't work.
func (s *Store) Validate() error {
	var faults []error
	if s.rdb == nil {
		faults = append(faults, errors.New("redisstore: the client is nil"))
	}
	if s.o.Budget < time.Millisecond {
		faults = append(faults, fmt.Errorf("redisstore: Options.Budget is %v, must be at least 1ms (0: %v); a bare number means nanoseconds", s.o.Budget, redislock.DefaultBudget))
	}
	if s.o.MaxBytes < 0 {
		faults = append(faults, fmt.Errorf("redisstore: Options.MaxBytes is %d, must be positive (0: %d)", s.o.MaxBytes, defaultMaxBytes))
	}
	if err := s.space.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("redisstore: Options.Prefix: %w", err))
	}
	return errors.Join(faults...)
}

// Locker returns the locker whose leases are in the same Redis.
func (s *Store) Locker() recompute.Locker { return s.locker }

func (s *Store) keys(name string) []string {
	return []string{s.space.Key("v", name), s.space.Key("f", name)}
}

var errRing = errors.New("redisstore: the servers of a ring share no channel")

// Watch tells of what other processes (and this one) do. With a ring it can't.
func (s *Store) Watch(ctx context.Context, tell func(cache.Event)) {
	if _, ring := s.rdb.(*redis.Ring); ring {
		tell(cache.Event{Kind: cache.Disconnected, Err: errRing})
		<-ctx.Done()
		return
	}
	s.hub.Listen(ctx, func(m redislock.Message, err error) {
		if e, ok := s.event(m, err); ok {
			tell(e)
		}
	})
}
