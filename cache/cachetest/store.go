// Package cachetest is the contract of cache's interfaces, as a test anyone can run on an implementation of their own.
// Its [Chaos] breaks what stands between a cache and its store, for tests of what happens then.
package cachetest

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

const (
	brief = 300 * time.Millisecond // a time that a test waits for
	slack = 100 * time.Millisecond // how much later than at its end an entry may be gone
	long  = time.Minute            // a time that it doesn't wait for
	soon  = 5 * time.Second        // when an event has come at the latest
)

// Two schemas. Whatever a name has under one is independent of what it has under the other.
const (
	one = "00000000000000a1"
	two = "00000000000000b2"
)

// TestStore runs the contract of [cache.Store], one property at a time, each on a store that open returns and on names
// of its own. Several stores that open returns may share a server and a namespace, as long as nobody else deletes
// there. If the store is a [cache.Watcher] or a [cache.Elector], the contract of that is run too.
//
// within runs a property. Give testing/synctest.Test for a store that lives in this process: then the suite takes no
// time. For one that speaks to a server give nil: the properties then run in parallel, in real time, and take about a
// second. On Redis, for example:
//
//	func TestTheStoreKeepsItsContract(t *testing.T) {
//		server := redistest.Start(t)
//		cachetest.TestStore(t, nil, func(t *testing.T) cache.Store {
//			return redisstore.New(redistest.Client(t, server), redisstore.Options{})
//		})
//	}
func TestStore(t *testing.T, within func(*testing.T, func(*testing.T)), open func(*testing.T) cache.Store) {
	for _, p := range properties {
		t.Run(p.says, func(t *testing.T) {
			test := func(t *testing.T) { p.holds(t, newSubject(t, open(t))) }
			if within != nil {
				within(t, test)
				return
			}
			t.Parallel()
			test(t)
		})
	}
}

// properties are the contract.
var properties = []struct {
	says  string
	holds func(*testing.T, *subject)
}{
	{"what was never written is not found", neverWritten},
	{"an entry comes back as it was written", comesBack},
	{"an entry is found promptly", foundPromptly},
	{"a later write replaces an earlier one", replaces},
	{"an entry is nobody's buffer", notAliased},
	{"an entry is gone after its ttl", goneAfterTTL},
	{"no ttl is rounded to none", tinyTTL},
	{"a schema's entry is not cut short by another's ttl", independentTTL},
	{"an age grows and is never below the truth", ageGrows},
	{"an age starts again with each write", ageStartsAgain},
	{"a write without data removes the entry", withoutDataRemoves},
	{"names are independent, whatever they hold", independentNames},
	{"schemas of a name are independent", independentSchemas},

	{"numbers grow", numbersGrow},
	{"of many who begin together no two get one number", numbersAreUnique},
	{"begin returns the entry that is newer than what was seen", beginReturnsNewer},
	{"begin returns no entry of another schema", beginReturnsOwnSchema},
	{"a write without a number of the store's is refused", unknownNumber},
	{"a write is refused after a higher one for the key", refusedAfterHigher},
	{"a write is refused after a higher one that removed", refusedAfterRemoval},
	{"a write is refused after a higher one that has run out", refusedAfterExpired},
	{"a write is not refused after a higher one of another schema", notRefusedAcrossSchemas},
	{"a write is not refused because another has begun", notRefusedByBegin},
	{"a write may be repeated", repeated},
	{"a number holds for the time it was asked for", numberHolds},
	{"a sole write removes the other schemas' entries", soleRemoves},
	{"a sole write refuses what began before it", soleRefuses},
	{"a sole write is refused after a higher one", soleRefused},
	{"of many writes the highest stands", highestStands},

	{"a deletion removes the entries of all schemas", deletionRemoves},
	{"a deletion refuses what began before it", deletionRefuses},
	{"a deletion takes a number", deletionTakesNumber},
	{"a deletion leaves other names alone", deletionLeavesOthers},
	{"absent names and none at all can be deleted", deletionOfNothing},
	{"a deletion as of earlier leaves what has begun since", deletionAsOfEarlier},
	{"a deletion as of long ago leaves everything", deletionLongAgo},

	{"a failure stops others for its pause", failureStops},
	{"a failure without a pause stops nobody", failureWithoutPause},
	{"a failure of one schema stops no other", failureOfSchema},
	{"a write ends a failure", writeEndsFailure},
	{"a deletion ends a failure", deletionEndsFailure},
	{"a failure after a later write or deletion does nothing", lateFailure},
	{"a failure leaves the entry", failureLeavesEntry},
	{"a pass stops others as a failure does", passStops},

	{"a watcher is connected before it hears anything", connectedFirst},
	{"a watcher hears of writes", hearsPublished},
	{"a watcher hears nothing of a refused write", hearsNoRefused},
	{"a watcher hears of deletions", hearsDeleted},
	{"a watcher hears of failures", hearsFailed},
	{"a watcher hears of passes", hearsPass},
	{"a watcher hears of the leases' life", hearsLeases},
	{"every watcher hears", everyWatcherHears},
	{"watching ends with its context", watchingEnds},
	{"leases are independent of entries", leasesAndEntries},
}

// subject is the store under test with what is asked of it again and again, and with a name that nobody else uses.
type subject struct {
	cache.Store
	t    *testing.T
	name string
}

func newSubject(t *testing.T, s cache.Store) *subject {
	return &subject{Store: s, t: t, name: "n:" + rand.Text()}
}

func (s *subject) key(schema string) cache.Key { return cache.Key{Name: s.name, Schema: schema} }

// begin takes a number.
func (s *subject) begin(key cache.Key) cache.Fence {
	s.t.Helper()
	fence, _, err := s.Begin(s.t.Context(), key, 0, long)
	require.NoError(s.t, err, "Begin %q", key)
	require.Positive(s.t, fence)
	return fence
}

// write is a Write that lasts.
func write(data string, fence cache.Fence) cache.Write {
	return cache.Write{Data: []byte(data), Fence: fence, TTL: long}
}

// set writes.
func (s *subject) set(key cache.Key, w cache.Write) {
	s.t.Helper()
	require.NoError(s.t, s.Set(s.t.Context(), key, w), "Set %q under %d", key, w.Fence)
}

// put begins and writes.
func (s *subject) put(key cache.Key, data string) cache.Fence {
	s.t.Helper()
	fence := s.begin(key)
	s.set(key, write(data, fence))
	return fence
}

// refused asserts that a write is refused and changes nothing.
func (s *subject) refused(key cache.Key, w cache.Write) {
	s.t.Helper()
	before := s.look(key)
	require.ErrorIs(s.t, s.Set(s.t.Context(), key, w), cache.ErrFenced, "Set %q under %d", key, w.Fence)
	after := s.look(key)
	require.Equal(s.t, string(before.Data), string(after.Data), "a refused write changes nothing")
	require.Equal(s.t, before.Fence, after.Fence)
	require.GreaterOrEqual(s.t, after.Age+slack, before.Age, "a refused write doesn't renew the entry")
}

// look returns what stands, a zero Entry for nothing.
func (s *subject) look(key cache.Key) cache.Entry {
	s.t.Helper()
	e, err := s.Get(s.t.Context(), key)
	if err != nil {
		require.ErrorIs(s.t, err, cache.ErrNotFound, "Get %q", key)
		require.Zero(s.t, e, "an error comes with no entry")
	}
	return e
}

// stands asserts what stands.
func (s *subject) stands(key cache.Key, data string) {
	s.t.Helper()
	e, err := s.Get(s.t.Context(), key)
	require.NoError(s.t, err, "Get %q", key)
	require.Equal(s.t, data, string(e.Data))
}

// absent asserts that nothing stands.
func (s *subject) absent(key cache.Key) {
	s.t.Helper()
	_, err := s.Get(s.t.Context(), key)
	require.ErrorIs(s.t, err, cache.ErrNotFound, "Get %q", key)
}

// delete deletes.
func (s *subject) delete(names ...string) {
	s.t.Helper()
	require.NoError(s.t, s.Delete(context.WithoutCancel(s.t.Context()), 0, names...))
}

// eventually waits for what a server may take its time for.
func (s *subject) eventually(says string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(soon); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			require.FailNow(s.t, says)
		}
	}
}
