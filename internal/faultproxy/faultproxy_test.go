package faultproxy_test

import (
	"context"
	"net"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
)

// through returns a proxy in front of a server, a client that goes through it without retries, and one that goes past it.
func through(t *testing.T) (p *faultproxy.Proxy, inside, outside *redis.Client) {
	s := redistest.Start(t)
	p = faultproxy.Start(t, s.Addr)
	inside = redistest.Client(t, &redisserver.Server{Addr: p.Addr}, func(o *redis.Options) {
		o.MaxRetries, o.ContextTimeoutEnabled = -1, true
	})
	return p, inside, redistest.Client(t, s)
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestWithoutRulesEverythingPasses(t *testing.T) {
	p, inside, _ := through(t)
	value := string(make([]byte, 100_000)) + "\r\n*1\r\n"
	require.NoError(t, inside.Set(t.Context(), "k", value, time.Minute).Err())
	got, err := inside.Get(t.Context(), "k").Result()
	require.NoError(t, err)
	assert.Equal(t, value, got)
	assert.Equal(t, 1, p.Accepted())
}

func TestALostReplyIsOfACommandThatWasApplied(t *testing.T) {
	for name, fault := range map[string]faultproxy.Fault{"dropped": faultproxy.DropReply, "stalled": faultproxy.StallReply} {
		t.Run(name, func(t *testing.T) {
			p, inside, outside := through(t)
			hits := p.On(faultproxy.Rule{Marker: "incr", Nth: 2, Do: fault})
			require.NoError(t, inside.Incr(t.Context(), "n").Err())
			require.Error(t, inside.Incr(soon(t), "n").Err())
			assert.Equal(t, "2", outside.Get(t.Context(), "n").Val())
			assert.EqualValues(t, 3, inside.Incr(t.Context(), "n").Val(), "on a new connection")
			assert.Equal(t, 1, hits.Count())
			assert.Equal(t, 2, p.Accepted())
		})
	}
}

func TestADroppedRequestIsNotApplied(t *testing.T) {
	p, inside, outside := through(t)
	hits := p.On(faultproxy.Rule{Marker: "incr", Do: faultproxy.DropRequest})
	require.Error(t, inside.Incr(t.Context(), "n").Err())
	require.Error(t, inside.Incr(t.Context(), "n").Err())
	assert.Equal(t, 2, hits.Count())
	p.Heal()
	require.NoError(t, inside.Incr(t.Context(), "n").Err())
	assert.Equal(t, "1", outside.Get(t.Context(), "n").Val())
}

func TestAnAnsweredRequestIsNotApplied(t *testing.T) {
	p, inside, outside := through(t)
	p.On(faultproxy.Rule{Marker: "incr", Nth: 1, Do: faultproxy.Answer, Say: "-MISCONF no"})
	require.ErrorContains(t, inside.Incr(t.Context(), "n").Err(), "MISCONF no")
	require.Equal(t, redis.Nil, outside.Get(t.Context(), "n").Err())
	require.NoError(t, inside.Incr(t.Context(), "n").Err())
	assert.Equal(t, 1, p.Accepted(), "the connection stays")
}

func TestAnAnswerCanDependOnTheRequest(t *testing.T) {
	p, inside, outside := through(t)
	p.On(faultproxy.Rule{Marker: "incr", Do: faultproxy.Answer, Ask: func(words []string) string {
		if slices.Equal(words, []string{"incrby", "a\r\nb", "7"}) {
			return ":42"
		}
		return ""
	}})
	assert.EqualValues(t, 42, inside.IncrBy(t.Context(), "a\r\nb", 7).Val())
	assert.EqualValues(t, 8, inside.IncrBy(t.Context(), "a\r\nb", 8).Val(), "it passes")
	assert.Equal(t, "8", outside.Get(t.Context(), "a\r\nb").Val())
}

func TestADelayedRequestIsAppliedThoughItsClientHasGone(t *testing.T) {
	p, inside, outside := through(t)
	p.On(faultproxy.Rule{Marker: "incr", Do: faultproxy.Delay, For: 300 * time.Millisecond})
	require.Error(t, inside.Incr(soon(t), "n").Err())
	require.NoError(t, inside.Close())
	require.Equal(t, redis.Nil, outside.Get(t.Context(), "n").Err())
	require.Eventually(t, func() bool { return outside.Get(t.Context(), "n").Val() == "1" }, 2*time.Second, 5*time.Millisecond)
}

func TestAHalfOpenConnectionTellsNeitherSide(t *testing.T) {
	p, inside, outside := through(t)
	require.NoError(t, inside.Ping(t.Context()).Err())
	p.HalfOpen()
	require.ErrorContains(t, inside.Incr(soon(t), "n").Err(), "timeout")
	require.NoError(t, inside.Incr(t.Context(), "n").Err(), "a new connection works")
	assert.Equal(t, "1", outside.Get(t.Context(), "n").Val())
	p.KillAll()
	require.Eventually(t, func() bool { return inside.Incr(t.Context(), "n").Err() == nil }, time.Second, time.Millisecond)
	assert.Equal(t, 3, p.Accepted())
}

func TestServersThatRefuseOrSayNothing(t *testing.T) {
	for addr, says := range map[string]string{faultproxy.Refused(t): "refused", faultproxy.Silent(t): "timeout"} {
		c := redistest.Client(t, &redisserver.Server{Addr: addr}, func(o *redis.Options) {
			o.MaxRetries, o.DialerRetries, o.ReadTimeout = -1, 1, 100*time.Millisecond
		})
		require.ErrorContains(t, c.Ping(t.Context()).Err(), says)
	}
}

func TestARefusingProxyRefusesUntilItIsRestored(t *testing.T) {
	p, inside, _ := through(t)
	require.NoError(t, inside.Incr(t.Context(), "n").Err())
	p.Refuse()
	_, err := net.Dial("tcp", p.Addr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Error(t, inside.Incr(soon(t), "n").Err())
	require.NoError(t, p.Restore())
	require.EqualValues(t, 2, inside.Incr(t.Context(), "n").Val())
}

func TestASilentProxyAcceptsAndAnswersNothingUntilItIsRestored(t *testing.T) {
	p, inside, outside := through(t)
	require.NoError(t, inside.Incr(t.Context(), "n").Err())
	p.Silence()
	require.ErrorContains(t, inside.Incr(soon(t), "n").Err(), "timeout", "on the connection that was there")
	require.ErrorContains(t, inside.Incr(soon(t), "n").Err(), "timeout", "on a new one")
	assert.Equal(t, 2, p.Accepted())
	require.NoError(t, p.Restore())
	require.NoError(t, inside.Incr(t.Context(), "n").Err())
	assert.Equal(t, "2", outside.Get(t.Context(), "n").Val(), "what was sent to it is lost")
}

func TestWhatIsSentIntoABlackHoleArrivesOnceItIsRestored(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a black hole needs Linux")
	}
	p, inside, outside := through(t)
	require.NoError(t, inside.Incr(t.Context(), "n").Err())
	require.NoError(t, p.BlackHole())
	require.ErrorContains(t, inside.Incr(soon(t), "n").Err(), "timeout", "on the connection that was there")
	_, err := net.DialTimeout("tcp", p.Addr, 200*time.Millisecond)
	require.ErrorContains(t, err, "timeout", "no new one comes about")
	assert.Equal(t, "1", outside.Get(t.Context(), "n").Val())
	assert.Equal(t, 1, p.Accepted())
	require.NoError(t, p.Restore())
	assert.Eventually(t, func() bool { return outside.Get(t.Context(), "n").Val() == "2" }, 2*time.Second, 5*time.Millisecond)
	require.NoError(t, inside.Incr(t.Context(), "n").Err())
}

func TestAProxyEndsInAnyState(t *testing.T) {
	for name, outage := range map[string]func(*faultproxy.Proxy){
		"open":       func(*faultproxy.Proxy) {},
		"refusing":   (*faultproxy.Proxy).Refuse,
		"silent":     (*faultproxy.Proxy).Silence,
		"black hole": func(p *faultproxy.Proxy) { _ = p.BlackHole() },
	} {
		t.Run(name, func(t *testing.T) {
			p, inside, _ := through(t)
			require.NoError(t, inside.Ping(t.Context()).Err())
			outage(p)
			_ = inside.Ping(soon(t)).Err()
			p.Close()
			p.Close()
			_, err := net.Dial("tcp", p.Addr)
			assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		})
	}
}
