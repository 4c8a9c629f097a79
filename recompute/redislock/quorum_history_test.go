package redislock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/linear"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

const (
	termTTL  = 300 * time.Millisecond
	observed = 3500 * time.Millisecond
)

// world is what clients of a quorum have to do with: its servers, a register on another, and the links between, of each client its own.
type world struct {
	*ensemble
	links []*faultproxy.Proxy
	variant
	calm  bool       // nothing fails
	need  int        // servers that are a majority, if it is wrong
	hooks redis.Hook // of the clients of the servers
}

// unraised answers in place of a server that it knows a number by now.
type unraised struct{ hash, text string }

func (unraised) DialHook(next redis.DialHook) redis.DialHook { return next }

func (unraised) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (u unraised) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if raise, ok := cmd.(*redis.Cmd); ok && slices.ContainsFunc(cmd.Args(), func(a any) bool { return a == u.hash || a == u.text }) {
			raise.SetVal(int64(1))
			return nil
		}
		return next(ctx, cmd)
	}
}

// observe runs six clients while links and servers fail at random, and returns what they did. The numbers of the servers are hours apart, as
// with clocks that are.
func (w world) observe(t *testing.T, servers int, seed uint64) *history {
	t.Helper()
	w.ensemble = startEnsemble(t, servers)
	o := redislock.QuorumOptions{Budget: 5 * time.Second, Longest: 2 * time.Second}
	_ = acquire(t, w.open(t, o), "found", 2*time.Second).Release(t.Context()) // it may have taken longer
	w.skew(t)
	store := redistest.Start(t)
	require.NoError(t, resource.Load(t.Context(), redistest.Client(t, store)).Err())

	link := func(addr string) string {
		p := faultproxy.Start(t, addr)
		w.links = append(w.links, p)
		return p.Addr
	}
	direct := func(o *redis.Options) { o.DialerRetries, o.ContextTimeoutEnabled = 1, true }
	h, clients := new(history), []func(){}
	o.Budget = termTTL / 2
	end := time.Now().Add(observed)
	if w.calm {
		o.Budget, end = 5*time.Second, time.Now().Add(observed/2)
	}
	for i := range clientCount {
		var members []redis.UniversalClient
		for _, s := range w.servers {
			c := to(t, link(s.Addr), direct)
			if w.hooks != nil {
				c.AddHook(w.hooks)
			}
			members = append(members, c)
		}
		q, err := redislock.NewQuorum(members, o)
		require.NoError(t, err)
		if w.need > 0 {
			q.Need(w.need)
		}
		register := to(t, link(store.Addr), direct, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, termTTL/2 })
		dice := rand.New(rand.NewPCG(seed, uint64(i)))
		clients = append(clients, func() {
			for time.Now().Before(end) {
				h.hold(t, q, register, dice, w.variant)
			}
		})
	}
	var all sync.WaitGroup
	for _, client := range clients {
		all.Go(client)
	}
	if !w.calm {
		w.disturb(t, rand.New(rand.NewPCG(seed, 99)), end)
	}
	all.Wait()
	return h
}

// hold asks for the lease, works under it, writes, and releases it, or is paused and writes when its time is over.
func (h *history) hold(t *testing.T, l recompute.Locker, register *redis.Client, dice *rand.Rand, v variant) {
	asked := time.Now()
	lease, err := l.Acquire(t.Context(), "key", termTTL)
	if err != nil {
		time.Sleep(time.Duration(1+dice.IntN(10)) * time.Millisecond)
		return
	}
	r := term{asked: asked, from: time.Now(), until: asked.Add(sure(termTTL) + v.trust), fence: lease.(recompute.Fenced).Fence()}
	for range dice.IntN(3) {
		time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
		again := time.Now()
		if lease.Extend(t.Context(), termTTL) != nil {
			break
		}
		// What was not held when the extension was sent can't be held after it.
		r.until = again.Add(sure(termTTL) + v.trust)
	}
	if dice.IntN(6) == 0 { // paused until its time is over
		h.add(r)
		time.Sleep(time.Until(r.until) + time.Duration(dice.IntN(200))*time.Millisecond)
		h.write(t.Context(), register, r.fence, v.careless)
		return
	}
	time.Sleep(time.Duration(dice.IntN(10)) * time.Millisecond)
	h.write(t.Context(), register, r.fence, v.careless)
	if now := time.Now(); now.Before(r.until) {
		r.until = now
	}
	h.add(r)
	_ = lease.Release(t.Context())
}

func sure(ttl time.Duration) time.Duration { return ttl - ttl/100 - 2*time.Millisecond }

func (h *history) add(r term) {
	if r.from.After(r.until) {
		return // it was granted too late to be of use
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.terms = append(h.terms, r)
}

// disturb loses, stalls and delays what clients and servers say to each other, cuts links, and pauses servers. Of five it empties some, one
// after the other: each has its vote and its numbers again before the next is killed.
func (w world) disturb(t *testing.T, dice *rand.Rand, end time.Time) {
	n := len(w.servers)
	for round := 0; time.Now().Before(end); round++ {
		for range 1 + dice.IntN(3) { // several links at a time
			w.links[dice.IntN(len(w.links))].On([]faultproxy.Rule{
				{Marker: "eval", Nth: 1 + dice.IntN(3), Do: faultproxy.DropReply},
				{Marker: "eval", Nth: 1 + dice.IntN(3), Do: faultproxy.StallReply},
				{Marker: "eval", Nth: 1 + dice.IntN(3), Do: faultproxy.DropRequest},
				{Marker: "eval", Do: faultproxy.Delay, For: time.Duration(dice.IntN(200)) * time.Millisecond},
				{Do: faultproxy.DropRequest},
			}[dice.IntN(5)])
		}
		server, pause := w.servers[dice.IntN(n)], time.Duration(50+dice.IntN(100))*time.Millisecond
		switch {
		case n > 3 && round > 0 && w.remembers(t):
			require.NoError(t, server.Kill())
			time.Sleep(pause)
			require.NoError(t, server.Restart())
		case dice.IntN(3) == 0:
			require.NoError(t, server.Pause())
			time.Sleep(2 * pause)
			require.NoError(t, server.Resume())
		default:
			time.Sleep(pause)
		}
		for _, p := range w.links {
			if dice.IntN(4) > 0 {
				p.Heal()
			}
		}
	}
	for _, p := range w.links {
		p.Heal()
	}
}

// remembers says whether all servers know what numbers were given.
func (w world) remembers(t *testing.T) bool {
	for _, c := range w.outside {
		marker, err := c.Get(t.Context(), markerKey).Result()
		if err != nil || strings.HasSuffix(marker, "?") {
			return false
		}
	}
	return true
}

// They are not parallel: with other tests beside them there would be little to see.
func TestUnderFaultsTwoNeverHoldALeaseOfAQuorumAndFencesAreInOrder(t *testing.T) {
	for _, c := range []struct {
		servers int
		seed    uint64
	}{{3, 1}, {5, 2630276271804858875}, {5, rand.Uint64()}} {
		t.Run(fmt.Sprintf("%d servers, seed %d", c.servers, c.seed), func(t *testing.T) {
			h := world{}.observe(t, c.servers, c.seed)
			t.Logf("%d terms, %d writes", len(h.terms), h.writes.Len())
			assert.Greater(t, len(h.terms), 1)
			assert.NoError(t, h.check())
		})
	}
}

// The checks find what they are there for.
func TestHistoriesOfAQuorumThatAreWrongAreFound(t *testing.T) {
	const overlap, back = "two relied on the lease", "a fence went back"
	for name, c := range map[string]struct {
		world
		says string
	}{
		"one server is no majority":                      {world{need: 1}, overlap},
		"a holder that relies on its lease for too long": {world{variant: variant{trust: 2 * termTTL}}, overlap},
		"a register that accepts old fences":             {world{variant: variant{careless: true}}, linear.ErrNoOrder.Error()},
		"numbers that servers are not told":              {world{hooks: unraised{script(t, "raise"), sourceOf(t, "raise")}}, back},
	} {
		t.Run(name, func(t *testing.T) {
			var said []error
			for seed := range uint64(3) { // on a busy machine there may be little to see
				c.calm = true
				err := c.observe(t, 3, seed).check()
				if err != nil && strings.Contains(err.Error(), c.says) {
					return
				}
				said = append(said, err)
			}
			t.Fatalf("not found: %v", said)
		})
	}
}
