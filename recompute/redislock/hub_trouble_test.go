package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// hears asserts that the ear hears what is said past the proxy.
func (w trouble) hears(t testing.TB, e *ear) {
	t.Helper()
	require.Positive(t, say(t, w.outside, redislock.Message{Kind: news, Name: "hear, hear"}))
	m, _ := e.next(news)
	require.Equal(t, "hear, hear", m.Name)
}

// go-redis would wait on such a connection for ever. This test uses the real silence, 3 s and 1 s.
func TestAHalfOpenSubscriptionIsNoticedAndReplaced(t *testing.T) {
	t.Parallel()
	w := through(t)
	e := listen(t, redislock.NewHub(redislock.NewSteps(w.inside, redislock.StepOptions{}), channel))
	e.next(redislock.Up)
	w.hears(t, e)
	w.proxy.HalfOpen()
	began := time.Now()
	_, err := e.next(redislock.Down)
	require.Error(t, err)
	e.next(redislock.Up)
	assert.Less(t, time.Since(began), 5*time.Second)
	w.hears(t, e)
}

// A subscription may be alive and yet on a server that nobody publishes on any more, such as one that was the primary.
func TestASubscriptionThatDoesNotHearItsOwnVoiceIsReplaced(t *testing.T) {
	t.Parallel()
	w := through(t)
	e := listen(t, newHub(w.inside))
	e.next(redislock.Up)
	w.proxy.On(faultproxy.Rule{Marker: "publish", Nth: 1, Do: faultproxy.Answer, Say: ":1"})
	_, err := e.next(redislock.Down)
	require.Regexp(t, "no echo|budget", err.Error()) // on a busy machine even the word may not get out in time
	e.next(redislock.Up)
	w.hears(t, e)
	subscribers(t, w.outside, 1)
}

// And it is not up before it has heard itself.
func TestASubscriptionThatNeverHearsItsOwnVoiceIsNotUp(t *testing.T) {
	t.Parallel()
	w := through(t)
	e := listen(t, newHub(w.inside))
	e.next(redislock.Up)
	asked := w.proxy.On(faultproxy.Rule{Marker: "publish", Do: faultproxy.Answer, Say: ":1"})
	e.next(redislock.Down)
	e.next(redislock.Down)
	require.Positive(t, asked.Count())
	for _, m := range e.all()[1:] {
		require.Equal(t, redislock.Down, m.Kind)
	}
	w.proxy.Heal()
	e.next(redislock.Up)
	w.hears(t, e)
}

func TestABrokenSubscriptionIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	w := through(t)
	e := listen(t, newHub(w.inside))
	e.next(redislock.Up)
	for range 5 { // and the pauses do not grow, since it worked in between
		w.proxy.KillAll()
		began := time.Now()
		_, err := e.next(redislock.Down)
		require.Error(t, err)
		e.next(redislock.Up)
		require.Less(t, time.Since(began), 300*time.Millisecond)
	}
	w.hears(t, e)
}

func TestAHubComesBackWithItsServer(t *testing.T) {
	t.Parallel()
	w := through(t)
	h := newHub(w.inside)
	e := listen(t, h)
	e.next(redislock.Up)
	require.NoError(t, w.Kill())
	_, err := e.next(redislock.Down)
	require.Error(t, err)
	late := listen(t, h)
	time.Sleep(300 * time.Millisecond)
	assert.NotContains(t, late.all(), redislock.Message{Kind: redislock.Up})
	require.NoError(t, w.Restart())
	late.next(redislock.Up)
	e.next(redislock.Up)
	w.hears(t, e)
}

// downs counts how often a hub says that it can't hear.
func (e *ear) downs() (n int) {
	for _, m := range e.all() {
		if m.Kind == redislock.Down {
			n++
		}
	}
	return n
}

func TestAHubThatMayNotSubscribeSaysSoAndTriesWithGrowingPauses(t *testing.T) {
	t.Parallel()
	admin := redistest.Client(t, redistest.Start(t))
	for name, rule := range map[string]string{"no command": "-subscribe", "no channel": "resetchannels"} {
		t.Run(name, func(t *testing.T) {
			e := listen(t, newHub(as(t, admin, rule)))
			_, err := e.next(redislock.Down)
			require.ErrorContains(t, err, "NOPERM")
			time.Sleep(1200 * time.Millisecond) // 50, 100, 200, 400, 800 ms, each ±50 %
			tries := e.downs()
			assert.GreaterOrEqual(t, tries, 4)
			assert.LessOrEqual(t, tries, 7)
			as(t, admin)
			_, err = e.next(redislock.Up)
			require.NoError(t, err)
		})
	}
}

func TestAHubThatMayNotPublishSaysSoOnceItIsQuiet(t *testing.T) {
	t.Parallel()
	admin := redistest.Client(t, redistest.Start(t))
	e := listen(t, newHub(as(t, admin, "-publish")))
	e.next(redislock.Up)
	say(t, admin, redislock.Message{Kind: news})
	e.next(news)
	began := time.Now()
	_, err := e.next(redislock.Down)
	require.ErrorContains(t, err, "NOPERM")
	assert.Greater(t, time.Since(began), quiet/2)
}

// The one who listens is told when to stop, by a context: whatever the server does.
func TestAListenerLeavesAtOnceWhateverItsServerDoes(t *testing.T) {
	t.Parallel()
	for outage, start := range outages {
		for name, change := range clients {
			t.Run(outage+", "+name, func(t *testing.T) {
				h := newHub(start(t, change))
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(200*time.Millisecond, cancel)
				e := &ear{t: t}
				began := time.Now()
				h.Listen(ctx, e.hear)
				assert.Less(t, time.Since(began), 200*time.Millisecond+budget)
				if outage == "refused" {
					assert.Positive(t, e.downs())
				}
			})
		}
	}
}

// What the first has begun goes on behind it for as long as go-redis takes to connect.
func TestAListenerTakesOverFromOneThatNeverHeardAnything(t *testing.T) {
	t.Parallel()
	for outage, start := range outages {
		t.Run(outage, func(t *testing.T) {
			h := newHub(start(t, func(o *redis.Options) { o.ReadTimeout, o.DialerRetries = 150*time.Millisecond, 1 }))
			first, second := listen(t, h), listen(t, h)
			for range 3 {
				time.Sleep(220 * time.Millisecond) // in the middle of a second attempt
				first.leave()
				first, second = second, listen(t, h)
			}
			second.next(redislock.Down)
		})
	}
}
