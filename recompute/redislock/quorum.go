package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

// QuorumRights is what the user of a [Quorum] with the prefix "bellwether" needs on each server, as ACL SETUSER takes it. Without info
// a server that has restarted is recognised only if it lost its data.
const QuorumRights = "~bellwether:* &bellwether:* +eval +evalsha +mget +set +del +pexpire +pttl +time +info +publish +subscribe"

// ErrQuorum says that too few servers of a [Quorum] answered to tell who has a lease. It comes with what each of them said.
var ErrQuorum = errors.New("redislock: too few servers could tell")

// QuorumOptions configures a [Quorum]. The zero value works.
type QuorumOptions struct {
	Prefix  string        // put before every Redis key, on all servers; default "bellwether"; no braces
	Budget  time.Duration // longest that one step on one server may take; default [DefaultBudget]
	MinLeft time.Duration // a lease granted or extended so slowly that less is left of it is not; default a tenth of its ttl
	Channel string        // where releases and renewals are announced, on all servers; default prefix:leases

	// Longest ttl of a lease; for so long a server that has lost its memory has no vote. Everybody who uses the servers must say the
	// same. Default 1 min.
	Longest time.Duration
}

const (
	// leastQuorumTTL is the shortest of which a holder that goes by recompute.Hold, which takes off a twentieth, takes off enough for drift.
	leastQuorumTTL = 50 * time.Millisecond
	// defaultLongest is above what a Guard asks for by default.
	defaultLongest = time.Minute
)

// Quorum grants leases from an odd number of Redis servers that know nothing of each other, three or more: a lease is held by who
// has it on most of them (the algorithm is known as Redlock). It is a [recompute.Waker], and its leases are [recompute.Fenced].
//
// It works while most of the servers do, and does not wait for the others. What it gives more than one server does: no single server
// that dies, hangs or is cut off stops those who need leases, and none that fails over to a replica grants a lease twice. To get
// a lease takes two commands on each server where a [Locker] sends one, and two round trips. Those who wait in several processes are woken
// together, not in turn.
//
// # What it does not give
//
// Exclusion still depends on time. A holder that is paused past the end of its lease goes on without it, and clocks of most servers
// that jump ahead end a lease before its holder knows: what the work writes needs a guard of its own, for example the fence. The
// fences are in order whatever the clocks say, for as long as most servers have kept what numbers were given, and are asked (see below).
//
// A server that restarts has forgotten leases, and with its vote a second holder could find a majority. So it has none for as long as
// any lease could last ([QuorumOptions].Longest), whatever it has saved. A marker on each server, with its run id, tells; also of a
// server whose data was flushed, or that has failed over to a replica. It can't tell of a server that dropped a lease for want of
// memory: let none of them evict (maxmemory-policy noeviction). Nor can it tell servers that have all lost their memory within a second
// from a set that is used for the first time, which begins at once if all are there; if not all are, it begins after Longest.
//
// What numbers were given before, such a server is told with the first lease, of whatever key, that it grants once it has its vote. That
// lease takes a majority of those that have forgotten nothing. Should too few of them be there, there is none for Longest again; after that,
// and at once if most have lost their data, clocks decide: numbers are in order if those of the servers are less than Longest apart.
//
// # When one server is enough
//
// When a lease saves work (a cache, a periodic job that may run twice) or when the fence is checked, a [Locker] on one server does
// all that is needed. A quorum is for those who run independent servers anyway and can't wait for a failover.
type Quorum struct {
	members []*member
	need    int
	budget  time.Duration
	minLeft time.Duration
	longest time.Duration
	waiters *recompute.Waiters
	turn    chan struct{} // held by who founds the set

	announcements announcements
}

// NewQuorum returns a Quorum of the servers of clients. It sends nothing yet. What can't work is an error.
func NewQuorum(clients []redis.UniversalClient, o QuorumOptions) (*Quorum, error) {
	if err := errors.Join(o.validate(), checkMembers(clients)); err != nil {
		return nil, err
	}
	q := &Quorum{
		need:    len(clients)/2 + 1,
		budget:  cmp.Or(o.Budget, DefaultBudget),
		minLeft: o.MinLeft,
		longest: cmp.Or(o.Longest, defaultLongest),
		waiters: new(recompute.Waiters),
		turn:    make(chan struct{}, 1),
	}
	for i, c := range clients {
		q.members = append(q.members, newMember(c, o, q.waiters, func(name string) bool { return q.released(i, name) }))
	}
	return q, nil
}

func (o QuorumOptions) validate() error {
	faults := []error{Space(o.Prefix).validate("QuorumOptions.Prefix")}
	for _, d := range []struct {
		name      string
		is, least time.Duration
	}{
		{"Budget", o.Budget, time.Millisecond}, {"MinLeft", o.MinLeft, time.Millisecond}, {"Longest", o.Longest, leastQuorumTTL},
	} {
		if d.is != 0 && d.is < d.least {
			faults = append(faults, fmt.Errorf("redislock: QuorumOptions.%s is %v, must be at least %v; a bare number means nanoseconds", d.name, d.is, d.least))
		}
	}
	if longest := cmp.Or(o.Longest, defaultLongest); longest >= leastQuorumTTL && o.MinLeft >= surely(longest) {
		faults = append(faults, fmt.Errorf("redislock: QuorumOptions.MinLeft is %v, must be less than what can be relied on of the longest lease (%v)",
			o.MinLeft, surely(longest)))
	}
	return errors.Join(faults...)
}

// checkMembers refuses what would not be a majority of independent servers.
func checkMembers(clients []redis.UniversalClient) error {
	var faults []error
	if n := len(clients); n < 3 || n%2 == 0 {
		faults = append(faults, fmt.Errorf("redislock: a quorum of %d servers, must be of an odd number from 3 on: an even one bears no more failures than one less", n))
	}
	seen := map[any]int{}
	for i, c := range clients {
		client, ok := c.(*redis.Client)
		switch {
		case c == nil || reflect.ValueOf(c).Kind() == reflect.Pointer && reflect.ValueOf(c).IsNil():
			faults = append(faults, fmt.Errorf("redislock: client %d of the quorum is nil", i))
			continue
		case !ok:
			faults = append(faults, fmt.Errorf("redislock: client %d of the quorum is a %T, must be a *redis.Client: each has one server", i, c))
			continue
		}
		server := any(client.Options().Addr)
		if server == "FailoverClient" { // what go-redis calls the servers of every sentinel
			server = client
		}
		if first, twice := seen[server]; twice {
			faults = append(faults, fmt.Errorf("redislock: clients %d and %d of the quorum have the same server: it would vote twice", first, i))
			continue
		}
		seen[server] = i
	}
	return errors.Join(faults...)
}

// Close ends the subscriptions, if there are any; from then on nobody is woken. Leases are not touched.
func (q *Quorum) Close() error {
	var faults []error
	for _, m := range q.members {
		faults = append(faults, m.Close())
	}
	return errors.Join(faults...)
}

// Acquire asks each server once for the lease of key, all together, and returns as soon as their answers decide. It returns
// [recompute.ErrHeld] when too many say that another has it, and [ErrQuorum] when too many can't tell. Several who ask at the same time
// can each have a part of the servers: then who has the first one that answers asks for the rest again and again, for one budget at most, and
// the others give theirs back. What a server grants later than that, or to a caller who has gone, is taken back.
func (q *Quorum) Acquire(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	if err := q.checkTTL(ttl); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h, err := q.ask(ctx, key, ttl)
	if errors.Is(err, errNoVote) && q.found(ctx) {
		h, err = q.ask(ctx, key, ttl)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (q *Quorum) ask(ctx context.Context, key string, ttl time.Duration) (*quorumLease, error) {
	h := q.lease(key, ttl)
	err := h.elect(ctx)
	if err == nil {
		err = h.raise(ctx)
	}
	if err == nil {
		err = q.timely(h.since, ttl)
	}
	if err == nil {
		err = ctx.Err() // its caller has gone, and would not release it
	}
	if err != nil {
		h.giveBack()
		return nil, err
	}
	return h, nil
}

// timely refuses a lease of which too little is left. Of its ttl counts what remains since before the servers were asked.
func (q *Quorum) timely(since time.Time, ttl time.Duration) error {
	took := time.Since(since)
	if left := surely(ttl) - took; left < cmp.Or(q.minLeft, ttl/10) {
		return fmt.Errorf("redislock: it took %v to get the lease of %v from a quorum, and too little is left", took, ttl)
	}
	return nil
}

// surely is how much of a ttl can be relied on although no two clocks run alike: the drift is Redlock's.
func surely(ttl time.Duration) time.Duration { return ttl - ttl/100 - 2*time.Millisecond }

func (q *Quorum) checkTTL(ttl time.Duration) error {
	if ttl < leastQuorumTTL || ttl > q.longest {
		return fmt.Errorf("redislock: ttl of a lease is %v, must be from %v to %v (QuorumOptions.Longest); a bare number means nanoseconds", ttl, leastQuorumTTL, q.longest)
	}
	return nil
}
