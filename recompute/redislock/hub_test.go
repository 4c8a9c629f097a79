package redislock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

const news = redislock.Kind('N') // a kind of our own

func TestAHubHearsWhatBecomesOfLeases(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	h := newHub(redistest.Client(t, s))
	assert.Equal(t, channel, h.Channel())
	e := listen(t, h)
	_, err := e.next(redislock.Up)
	require.NoError(t, err)
	l := must(redistest.Client(t, s), redislock.Options{Channel: channel}) // of another process
	for _, name := range []string{"key", "", "}", "1:2", "a\x00\r\n\xff", "R3:key"} {
		lease := acquire(t, l, name, long)
		require.NoError(t, lease.Extend(t.Context(), long))
		m, _ := e.next(redislock.Renewed)
		assert.Equal(t, redislock.Message{Kind: redislock.Renewed, Name: name}, m)
		require.NoError(t, lease.Release(t.Context()))
		m, _ = e.next(redislock.Released)
		assert.Equal(t, redislock.Message{Kind: redislock.Released, Name: name}, m)
		require.Error(t, lease.Extend(t.Context(), long))
		require.Error(t, lease.Release(t.Context()))
	}
	say(t, redistest.Client(t, s), redislock.Message{Kind: news})
	e.next(news)
	assert.Len(t, e.all(), 1+6*2+1, "and nothing is said of what did not happen")
}

func TestAHubHandsOnMessagesOfOtherKindsWithTheirBodies(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	e := listen(t, newHub(redistest.Client(t, s)))
	e.next(redislock.Up)
	m := redislock.Message{Kind: news, Name: "key", Body: "any\x00bytes"}
	require.NoError(t, c.Publish(t.Context(), channel, m.Head()+m.Body).Err())
	got, err := e.next(news)
	require.NoError(t, err)
	assert.Equal(t, m, got)
}

// Anyone may publish.
func TestAHubIgnoresWhatIsNoMessageOrOnlyForItself(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	e := listen(t, newHub(redistest.Client(t, s)))
	e.next(redislock.Up)
	for _, payload := range []string{"", "R", "R3", "R3:ab", "R-1:", "R+1:a", "Rx:a", "R99999999999999999999:a", "+0:", "-0:", "?5:hello"} {
		require.NoError(t, c.Publish(t.Context(), channel, payload).Err())
	}
	require.NoError(t, c.Publish(t.Context(), "another", "R3:key").Err())
	say(t, c, redislock.Message{Kind: news})
	e.next(news)
	assert.Equal(t, []redislock.Message{{Kind: redislock.Up}, {Kind: news}}, e.all())
}

func TestListenersShareOneSubscription(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	h := newHub(redistest.Client(t, s))
	h.Silence(time.Minute) // it must not be what ends a subscription
	subscribers(t, c, 0)
	first := listen(t, h)
	first.next(redislock.Up)
	var others []*ear
	for range 10 {
		others = append(others, listen(t, h))
		others[len(others)-1].next(redislock.Up) // it hears at once
	}
	subscribers(t, c, 1)
	require.EqualValues(t, 1, say(t, c, redislock.Message{Kind: news, Name: "to all"}))
	for _, e := range append(others, first) {
		m, _ := e.next(news)
		assert.Equal(t, "to all", m.Name)
	}

	first.leave()
	for _, e := range others { // another listener runs it now: what was said in between is lost, and they are told so
		e.next(redislock.Down)
		e.next(redislock.Up)
	}
	subscribers(t, c, 1)
	require.EqualValues(t, 1, say(t, c, redislock.Message{Kind: news, Name: "to those who stayed"}))
	for _, e := range others {
		m, _ := e.next(news)
		assert.Equal(t, "to those who stayed", m.Name)
		e.leave()
	}
	subscribers(t, c, 0)
}

func TestAListenerThatOnlyListensMayLeaveUnnoticed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	h := newHub(redistest.Client(t, s))
	first := listen(t, h)
	first.next(redislock.Up)
	second := listen(t, h)
	second.next(redislock.Up)
	second.leave()
	say(t, c, redislock.Message{Kind: news})
	first.next(news)
	assert.Len(t, first.all(), 2)
	assert.Len(t, second.all(), 1)
	first.leave()
	subscribers(t, c, 0)
	third := listen(t, h) // and a hub may be used again
	third.next(redislock.Up)
}

func TestAQuietHubAsksItselfWhetherItHears(t *testing.T) {
	t.Parallel()
	w := through(t)
	asked := w.proxy.On(faultproxy.Rule{Marker: "publish", Do: faultproxy.Delay})
	e := listen(t, newHub(w.inside))
	e.next(redislock.Up)
	for range 20 { // while others talk, there is no need to
		say(t, w.outside, redislock.Message{Kind: news})
		time.Sleep(quiet / 5)
	}
	require.Zero(t, asked.Count())
	require.Eventually(t, func() bool { return asked.Count() == 3 }, 6*quiet, quiet/10)
	e.leave()
	for _, m := range e.all()[:21] {
		assert.NotEqual(t, redislock.Down, m.Kind)
	}
	assert.Len(t, e.all(), 22, "its leaving is the only other thing it hears of")
}
