package middleware_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAResponseIsServedAgainWithItsAge(t *testing.T) {
	s := serve(t, text("hello", minute, "X-Mine: a"), replicas(2))
	first := s.get("/a")
	require.NoError(t, first.err)
	assert.Equal(t, 200, first.status)
	assert.Equal(t, "hello", first.body)
	assert.Equal(t, "Bellwether;fwd=uri-miss;stored", first.how())
	assert.Empty(t, first.header.Get("Age"), "it comes from the handler")
	assert.EqualValues(t, 5, first.length)
	for replica := range 2 {
		again := s.at(replica, "/a")
		assert.Equal(t, "Bellwether;hit;ttl=59", again.how())
		assert.Equal(t, "0", again.header.Get("Age"))
		for _, h := range []http.Header{first.header, again.header} {
			h.Del("Age")
			h.Del("Cache-Status")
		}
		again.took, first.took = 0, 0
		assert.Equal(t, first, again, "nothing else differs, the Date neither")
	}
	assert.EqualValues(t, 1, s.runs.Load())

	s = serve(t, text("hello", minute, "Age: 30"))
	s.get("/a")
	assert.Equal(t, "30", s.get("/a").header.Get("Age"), "which it may have brought along")
}

func TestAHerdIsOneRunOfTheHandler(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { g.pass(); say(w, "hello", minute) }, replicas(2))
	wait := s.crowd(100, "/a")
	g.wait(t)
	s.settle()
	g.free()
	assert.Equal(t, map[string]int{"200 hello": 100}, bodies(wait()))
	assert.EqualValues(t, 1, s.runs.Load())
}

func TestTheFirstByteReachesTheLeaderBeforeTheHandlerEnds(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { say(w, "first\n", minute); g.pass(); say(w, "last\n") })
	leader := s.open(0, "/a")
	assert.Equal(t, "first", leader.line())
	waiters := s.crowd(5, "/a")
	s.settle()
	g.free()
	assert.Equal(t, "last", leader.line())
	assert.Equal(t, map[string]int{"200 first\nlast\n": 5}, bodies(waiters()))
	assert.EqualValues(t, 1, s.runs.Load())
}

func TestWhatIsForOneAloneIsNeverShared(t *testing.T) {
	for name, fields := range map[string][]string{
		"private":       {"Cache-Control: private, max-age=60"},
		"no-store":      {"Cache-Control: no-store, max-age=60"},
		"a cookie":      {minute, "Set-Cookie: session=1"},
		"Vary: *":       {minute, "Vary: *"},
		"trailers":      {minute, "Trailer: X-End"},
		"no lifetime":   {},
		"no-cache":      {"Cache-Control: no-cache"},
		"no-cache, tag": {"Cache-Control: no-cache", `ETag: "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				g.pass()
				say(w, r.Header.Get("X-Me"), fields...)
			}, replicas(2))
			var waits []func() []answer
			for _, me := range []string{"a", "b", "c", "d", "e", "f"} {
				waits = append(waits, s.crowd(2, "/a", "X-Me: "+me))
			}
			g.wait(t)
			s.settle()
			began := time.Now()
			g.free()
			for i, wait := range waits {
				me := string(rune('a' + i))
				assert.Equal(t, map[string]int{"200 " + me: 2}, bodies(wait()))
			}
			assert.Less(t, time.Since(began), 3*time.Second, "they don't queue")
			assert.EqualValues(t, 12, s.runs.Load())
			again := s.get("/a", "X-Me: z")
			assert.Equal(t, "z", again.body)
		})
	}
}
