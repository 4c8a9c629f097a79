package redisstore_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/stale"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// prefix is that of the caches under test. What a test itself keeps in Redis has another.
const prefix = "t"

const (
	patience = 10 * time.Second // for what comes
	tick     = time.Millisecond // between looks whether it has come
)

var minute = stale.Policy{Fresh: time.Minute}

// serve starts a server. When the test and its replicas have ended, it checks what they left on it.
func serve(t *testing.T, args ...string) *redisserver.Server {
	t.Helper()
	s := redistest.Start(t, args...)
	t.Cleanup(func() {
		if s.Pid() != 0 && !t.Failed() {
			checkLeftovers(t, s.Addr)
		}
	})
	return s
}

// checkLeftovers looks for leases, and for keys that would stay for ever.
func checkLeftovers(t *testing.T, addr string) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	assert.EventuallyWithT(t, func(t *assert.CollectT) { assert.Empty(t, leases(rdb)) }, 3*time.Second, 10*time.Millisecond, "leases are left")
	for key, ttl := range redistest.Keys(t, rdb) {
		if strings.HasPrefix(key, prefix+":") {
			assert.GreaterOrEqual(t, ttl, time.Duration(0), "%q has no TTL", key) // 0: less than a millisecond is left
		}
	}
}

// leases returns the keys of all leases. (What an acquire that was taken back leaves has more after the brace.)
func leases(rdb *redis.Client) (held []string) {
	keys, _ := rdb.Keys(context.Background(), prefix+":l*").Result()
	for _, key := range keys {
		if strings.HasSuffix(key, "}") {
			held = append(held, key)
		}
	}
	return held
}

// setup is what a test may change of a replica.
type setup[V any] struct {
	redis redis.Options
	store redisstore.Options
	cache cache.Options[V]
}

// replica is a cache with a client of its own, as a process of a fleet would have.
type replica[V any] struct {
	*cache.Cache[V]
	rdb   *redis.Client // nil where the client is of another kind
	store *redisstore.Store
	tally *tally
}

// tally counts what the trace tells.
type tally struct {
	computed, damaged, unencodable, overtaken, held, failed, lost atomic.Int64

	mu     sync.Mutex
	push   []bool
	steps  map[string]int // failed ones
	errors []error
}

// join starts a replica of values V and waits until it hears announcements. The defaults are meant for tests that
// count: a step may take seconds, so that a slow machine is not taken for a broken Redis.
func join[V any](t *testing.T, addr string, change ...func(*setup[V])) *replica[V] {
	t.Helper()
	r := enlist(t, addr, change...)
	require.Eventually(t, r.tally.hears, patience, tick, "no announcements")
	return r
}

// enlist starts a replica and does not wait for anything.
func enlist[V any](t *testing.T, addr string, change ...func(*setup[V])) *replica[V] {
	t.Helper()
	s := arrange(change)
	s.redis.Addr = addr
	rdb := redis.NewClient(&s.redis)
	r := found(t, rdb, s)
	r.rdb = rdb
	return r
}

// arrange returns the setup that the changes make.
func arrange[V any](change []func(*setup[V])) *setup[V] {
	s := &setup[V]{
		store: redisstore.Options{Prefix: prefix, Budget: 5 * time.Second},
		cache: cache.Options[V]{Policy: minute},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

// found makes a replica over a client, which it closes in the end.
func found[V any](t *testing.T, rdb redis.UniversalClient, s *setup[V]) *replica[V] {
	t.Helper()
	r := &replica[V]{tally: &tally{steps: make(map[string]int)}}
	s.cache.Trace = r.tally.trace()
	t.Cleanup(func() { _ = rdb.Close() }) // a test may have closed it before
	r.store = redisstore.New(rdb, s.store)
	c, err := cache.New(r.store, s.cache)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	r.Cache = c
	return r
}

func (n *tally) trace() cache.Trace {
	var t cache.Trace
	t.Computed = func(time.Duration, error) { n.computed.Add(1) }
	t.Damaged = func(error) { n.damaged.Add(1) }
	t.Unencodable = func(error) { n.unencodable.Add(1) }
	t.Overtaken = func() { n.overtaken.Add(1) }
	t.Lease.Held = func() { n.held.Add(1) }
	t.Lease.Failed = func(error) { n.failed.Add(1) }
	t.Lease.Lost = func() { n.lost.Add(1) }
	t.Push = func(on bool, err error) {
		n.note(func() { n.push = append(n.push, on); n.errors = append(n.errors, err) })
	}
	t.StoreFailed = func(step string, err error) { n.note(func() { n.steps[step]++; n.errors = append(n.errors, err) }) }
	return t
}

func (n *tally) note(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// hears says whether announcements arrive.
func (n *tally) hears() (on bool) {
	n.note(func() { on = len(n.push) > 0 && n.push[len(n.push)-1] })
	return on
}

// pushed says whether the trace told that announcements arrive, or don't.
func (n *tally) pushed(on bool) (told bool) {
	n.note(func() { told = slices.Contains(n.push, on) })
	return told
}

// failures returns how often a step of the store failed.
func (n *tally) failures(step string) (count int) {
	n.note(func() { count = n.steps[step] })
	return count
}

// fleet starts n replicas.
func fleet[V any](t *testing.T, addr string, n int, change ...func(*setup[V])) []*replica[V] {
	t.Helper()
	replicas := make([]*replica[V], n)
	for i := range replicas {
		replicas[i] = join(t, addr, change...)
	}
	return replicas
}

// origin is where values come from. It counts how often it is asked.
type origin[V any] struct {
	value V
	takes time.Duration
	runs  atomic.Int64
}

func (o *origin[V]) compute(context.Context) (V, error) {
	o.runs.Add(1)
	time.Sleep(o.takes)
	return o.value, nil
}

// gated is a computation that says when it runs and goes on when told to. It heeds no context.
type gated[V any] struct {
	value   V
	runs    atomic.Int64
	running chan struct{} // gets a token from each run
	open    chan struct{} // close it to let all runs end
}

func gate[V any](v V) *gated[V] {
	return &gated[V]{value: v, running: make(chan struct{}, 1000), open: make(chan struct{})}
}

func (g *gated[V]) compute(context.Context) (V, error) {
	g.runs.Add(1)
	g.running <- struct{}{}
	<-g.open
	return g.value, nil
}

// herd calls from every replica k times at once and returns how the calls were answered. It checks that each got v.
func herd[V comparable](t *testing.T, replicas []*replica[V], k int, key string, v V, compute cache.Compute[V]) map[cache.Outcome]int {
	t.Helper()
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		outcomes = make(map[cache.Outcome]int)
	)
	for _, r := range replicas {
		for range k {
			wg.Go(func() {
				got, err := r.Lookup(t.Context(), key, compute)
				mu.Lock()
				defer mu.Unlock()
				outcomes[got.Outcome]++
				if assert.NoError(t, err) && got.Value != v {
					t.Errorf("a wrong value of %T", v)
				}
			})
		}
	}
	wg.Wait()
	return outcomes
}

// ask looks a key up in the background.
func ask[V any](t *testing.T, r *replica[V], key string, compute cache.Compute[V]) <-chan answer[V] {
	c := make(chan answer[V], 1)
	began := time.Now()
	ctx := t.Context()
	go func() {
		result, err := r.Lookup(ctx, key, compute)
		c <- answer[V]{result, err, time.Since(began)}
	}()
	return c
}

type answer[V any] struct {
	cache.Result[V]
	err  error
	took time.Duration
}

// get looks a key up and expects an outcome.
func get[V any](t *testing.T, r *replica[V], key string, compute cache.Compute[V], want cache.Outcome) V {
	t.Helper()
	got, err := r.Lookup(t.Context(), key, compute)
	require.NoError(t, err)
	assert.Equal(t, want.String(), got.Outcome.String())
	return got.Value
}

// never is for lookups that must find something.
func never[V any](t *testing.T) cache.Compute[V] {
	return func(context.Context) (v V, err error) {
		t.Error("computed, but should have been found")
		return v, nil
	}
}

// ctx is for commands of the tests' own.
var ctx = context.Background()

// redisKey returns the Redis key that plays role for a cache's key.
func redisKey(role, key string) string { return prefix + ":" + role + ":{" + key + "}" }

// entryField returns the field of the entry of key, which is the schema of its type.
func entryField(t *testing.T, rdb *redis.Client, key string) string {
	t.Helper()
	fields, err := rdb.HKeys(ctx, redisKey("v", key)).Result()
	require.NoError(t, err)
	require.Len(t, fields, 1)
	return fields[0]
}

// write runs commands of the test's own.
func write(t *testing.T, rdb *redis.Client, commands func(redis.Pipeliner)) {
	t.Helper()
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error { commands(p); return nil })
	require.NoError(t, err)
}
