package redislock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

const (
	termTTL  = 400 * time.Millisecond
	observed = 4 * time.Second
)

// observe runs clients, each with proxies of its own to the servers, while links and servers fail at random.
func observe(t *testing.T, servers, clients int, seed uint64, prepare func([]*redislock.Quorum)) *history {
	t.Helper()
	e := startEnsemble(t, servers)
	o := redislock.QuorumOptions{Budget: 100 * time.Millisecond, Longest: termTTL}
	founder := e.open(t, redislock.QuorumOptions{Budget: 5 * time.Second, Longest: termTTL})
	require.NoError(t, acquire(t, founder, "found", termTTL).Release(t.Context()))
	if servers == 3 {
		e.skew(t)
	}
	var quorums []*redislock.Quorum
	for range clients {
		own := &ensemble{servers: e.servers}
		for _, s := range e.servers {
			own.proxies = append(own.proxies, faultproxy.Start(t, s.Addr))
		}
		e.proxies = append(e.proxies, own.proxies...)
		quorums = append(quorums, own.open(t, o, func(o *redis.Options) { o.DialerRetries = 1 }))
	}
	prepare(quorums)
	h := new(history)
	end := time.Now().Add(observed)
	var all sync.WaitGroup
	for i, q := range quorums {
		dice := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for time.Now().Before(end) {
				h.hold(t, q, dice)
			}
		})
	}
	e.disturb(t, rand.New(rand.NewPCG(seed, 99)), end)
	all.Wait()
	return h
}

// hold asks for the lease, works under it, and releases it, or is paused and forgets to.
func (h *history) hold(t *testing.T, l recompute.Locker, dice *rand.Rand) {
	asked := time.Now()
	lease, err := l.Acquire(t.Context(), "key", termTTL)
	if err != nil {
		time.Sleep(time.Duration(1+dice.IntN(10)) * time.Millisecond)
		return
	}
	r := term{asked: asked, from: time.Now(), until: asked.Add(sure(termTTL)), fence: lease.(recompute.Fenced).Fence()}
	for range dice.IntN(3) {
		time.Sleep(time.Duration(dice.IntN(40)) * time.Millisecond)
		again := time.Now()
		if lease.Extend(t.Context(), termTTL) != nil {
			break
		}
		// What was not held when the extension was sent can't be held after it.
		r.until = again.Add(sure(termTTL))
	}
	if dice.IntN(8) == 0 { // paused until its time is over
		h.add(r)
		time.Sleep(time.Until(r.until))
		return
	}
	time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
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

// disturb loses, stalls and delays what clients and servers say to each other, cuts links, and pauses, kills and empties servers.
func (e *ensemble) disturb(t *testing.T, dice *rand.Rand, end time.Time) {
	n := len(e.servers)
	var restarted time.Time
	for time.Now().Before(end) {
		link, server := e.proxies[n+dice.IntN(len(e.proxies)-n)], dice.IntN(n)
		for range 1 + dice.IntN(2) { // several links at a time
			link.On([]faultproxy.Rule{
				{Marker: "eval", Nth: 1 + dice.IntN(3), Do: faultproxy.DropReply},
				{Marker: "eval", Nth: 1 + dice.IntN(3), Do: faultproxy.StallReply},
				{Marker: "eval", Nth: 1 + dice.IntN(3), Do: faultproxy.DropRequest},
				{Marker: "eval", Do: faultproxy.Delay, For: time.Duration(dice.IntN(200)) * time.Millisecond},
				{Do: faultproxy.DropRequest},
			}[dice.IntN(5)])
			link = e.proxies[n+dice.IntN(len(e.proxies)-n)]
		}
		pause := time.Duration(50+dice.IntN(100)) * time.Millisecond
		switch {
		case dice.IntN(6) == 0 && n > 3 && time.Since(restarted) > 3*termTTL:
			require.NoError(t, e.servers[server].Kill())
			time.Sleep(pause)
			require.NoError(t, e.servers[server].Restart())
			restarted = time.Now()
		case dice.IntN(3) == 0:
			require.NoError(t, e.servers[server].Pause())
			time.Sleep(2 * pause)
			require.NoError(t, e.servers[server].Resume())
		default:
			time.Sleep(pause)
		}
		for _, p := range e.proxies {
			if dice.IntN(4) > 0 {
				p.Heal()
			}
		}
	}
	for _, p := range e.proxies {
		p.Heal()
	}
}

// Of three servers the clocks are hours apart, five are killed at times: both at once could put fences out of order, as the doc says.
func TestUnderFaultsTwoNeverHoldALeaseOfAQuorumAndFencesAreInOrder(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{3, 5} {
		t.Run(fmt.Sprint(servers), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			h := observe(t, servers, clientCount, seed, func([]*redislock.Quorum) {})
			t.Logf("seed %d: %d terms", seed, len(h.terms))
			assert.Greater(t, len(h.terms), 1)
			assert.NoError(t, h.check())
		})
	}
}

// The control of the test above. That of the fences is TestTheHighestFenceThatAMajorityGivesDoesNotAlwaysGrow.
func TestHistoriesShowThatOneServerIsNoMajority(t *testing.T) {
	t.Parallel()
	h := observe(t, 3, clientCount, 1, func(quorums []*redislock.Quorum) {
		for _, q := range quorums {
			q.Need(1)
		}
	})
	assert.ErrorContains(t, h.check(), "two relied on the lease")
}
