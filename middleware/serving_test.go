package middleware_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

const tag = `ETag: "1"`

func TestAConditionalRequestIsAnsweredFromTheWholeResponse(t *testing.T) {
	var conditions atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["If-None-Match"])+len(r.Header["If-Modified-Since"]) > 0 {
			conditions.Add(1)
		}
		say(w, "hello", minute, tag, "Last-Modified: Mon, 02 Jan 2006 15:04:05 GMT")
	})
	for range 2 { // as a miss, and as a hit
		a := s.get("/a", `If-None-Match: W/"1"`)
		assert.Equal(t, 304, a.status)
		assert.Empty(t, a.body)
		assert.Equal(t, `"1"`, a.header.Get("ETag"))
		assert.Equal(t, "max-age=60", a.header.Get("Cache-Control"))
	}
	assert.Equal(t, 304, s.get("/a", "If-Modified-Since: Mon, 02 Jan 2006 15:04:05 GMT").status)
	assert.Equal(t, "hello", s.get("/a", `If-None-Match: "2"`).body)
	assert.Equal(t, "hello", s.get("/a").body)
	assert.EqualValues(t, 1, s.runs.Load())
	assert.Zero(t, conditions.Load(), "what a client has is no reason to store less than the whole")
}

func TestAConditionOnAPrivateResponseIsStillHeeded(t *testing.T) {
	s := serve(t, text("hello", "Cache-Control: private", tag))
	assert.Equal(t, 304, s.get("/a", `If-None-Match: "1"`).status)
	assert.Equal(t, "hello", s.get("/a").body)
}

func TestAStaleResponseIsConfirmedByItsHandler(t *testing.T) {
	t.Parallel()
	var etag atomic.Value
	etag.Store(`"1"`)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, "Cache-Control: max-age=1", "ETag: "+etag.Load().(string), "X-Asked: "+r.Header.Get("If-None-Match"))
		if r.Header.Get("If-None-Match") == etag.Load() {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		say(w, "body of "+etag.Load().(string))
	}, replicas(2))
	assert.Equal(t, `body of "1"`, s.get("/a").body)
	time.Sleep(1100 * time.Millisecond)
	a := s.at(1, "/a")
	assert.Equal(t, 200, a.status, "a 304 is not for a client who has nothing")
	assert.Equal(t, `body of "1"`, a.body)
	assert.Equal(t, `"1"`, a.header.Get("X-Asked"), "its fields are updated")
	assert.Equal(t, "Bellwether;fwd=stale;fwd-status=304;stored", a.how())
	assert.True(t, s.get("/a").hit())
	assert.EqualValues(t, 2, s.runs.Load())
	etag.Store(`"2"`)
	time.Sleep(1100 * time.Millisecond)
	assert.Equal(t, `body of "2"`, s.get("/a").body)
	assert.EqualValues(t, 3, s.runs.Load())
}

func TestA304AboutSomethingElseIsAskedAgain(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			set(w, `ETag: "other"`, minute)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		n.Add(1)
		say(w, "hello", "Cache-Control: max-age=1", tag)
	})
	s.get("/a")
	time.Sleep(1100 * time.Millisecond)
	assert.Equal(t, "hello", s.get("/a").body)
	assert.EqualValues(t, 2, n.Load())
}

// Without this, the answer for one alone would be stored because it came as a 304.
func TestA304ThatForbidsItIsNotShared(t *testing.T) {
	t.Parallel()
	var private atomic.Bool
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, tag)
		if !private.Load() {
			say(w, "hello", "Cache-Control: max-age=1")
			return
		}
		g.pass()
		set(w, "Cache-Control: private, max-age=60")
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		say(w, "own")
	})
	s.get("/a")
	private.Store(true)
	time.Sleep(1100 * time.Millisecond)
	leader := s.crowd(1, "/a")
	g.wait(t)
	waiters := s.crowd(3, "/a")
	s.settle()
	g.free()
	assert.Equal(t, "hello", leader()[0].body)
	assert.Equal(t, map[string]int{"200 own": 3}, bodies(waiters()))
	assert.False(t, s.get("/a").hit())
}

func TestHeadIsAnsweredFromAStoredGetAndNeverMakesOne(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { say(w, "hello", minute, "X-Method: "+r.Method) })
	a := s.send("HEAD", "/a")
	assert.Equal(t, "HEAD", a.header.Get("X-Method"))
	assert.Equal(t, "hello", s.get("/a").body)
	a = s.send("HEAD", "/a")
	assert.True(t, a.hit())
	assert.Equal(t, "GET", a.header.Get("X-Method"))
	assert.EqualValues(t, 5, a.length)
	assert.Empty(t, a.body)
	assert.Equal(t, "hello", s.get("/a").body)
	assert.EqualValues(t, 2, s.runs.Load())
}

func TestARangeIsServedFromTheWholeAndNeverStored(t *testing.T) {
	content := "0123456789"
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, minute, tag)
		if r.Header.Get("Range") != "" {
			set(w, "Content-Range: bytes 2-3/10")
			w.WriteHeader(http.StatusPartialContent)
			say(w, content[2:4])
			return
		}
		say(w, content)
	})
	a := s.get("/a", "Range: bytes=2-3")
	assert.Equal(t, 206, a.status, "the handler's own")
	assert.False(t, a.hit())
	assert.Equal(t, content, s.get("/a").body)
	a = s.get("/a", "Range: bytes=4-5")
	assert.True(t, a.hit())
	assert.Equal(t, 206, a.status)
	assert.Equal(t, "45", a.body)
	assert.Equal(t, "bytes 4-5/10", a.header.Get("Content-Range"))
	assert.Equal(t, content, s.get("/a", "Range: bytes=4-5", `If-Range: "2"`).body)
	assert.Equal(t, "45", s.get("/a", "Range: bytes=4-5", `If-Range: "1"`).body)
	assert.Equal(t, 416, s.get("/a", "Range: bytes=40-").status)
	assert.Equal(t, content, s.get("/a").body)
	assert.EqualValues(t, 2, s.runs.Load())
}

func TestOnlyWhatTheHandlerSetIsStored(t *testing.T) {
	var n atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, w.Header(), "outer fields are not the handler's")
		say(w, "hello", minute, "Connection: X-Hop", "X-Hop: 1", "Keep-Alive: 1", "X-Mine: 1", "Server-Timing: 1", "Vary: X-In",
			`Cache-Control: no-cache="x-secret"`, "X-Secret: 1")
	}, options(middleware.Options{Drop: []string{"server-timing"}}), around(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			set(w, "X-Request-Id: "+string(rune('0'+n.Add(1))), "Vary: X-Out")
			next.ServeHTTP(w, r)
		})
	}))
	first, again := s.get("/a"), s.get("/a")
	assert.True(t, again.hit())
	assert.Equal(t, "1", first.header.Get("X-Request-Id"))
	assert.Equal(t, "2", again.header.Get("X-Request-Id"))
	assert.Equal(t, "1", again.header.Get("X-Mine"))
	assert.Equal(t, []string{"X-Out", "X-In"}, again.header["Vary"])
	for _, field := range []string{"X-Hop", "Keep-Alive", "Server-Timing", "X-Secret"} {
		assert.Empty(t, again.header[field], field)
	}
	assert.Equal(t, "1", first.header.Get("Server-Timing"), "the leader gets all of it")
}

func TestAClientWhoWantsOnlyWhatIsStoredGetsThat(t *testing.T) {
	s := serve(t, text("hello", minute))
	assert.Equal(t, 504, s.get("/a", "Cache-Control: only-if-cached").status)
	assert.Zero(t, s.runs.Load())
	s.get("/a")
	assert.Equal(t, "hello", s.get("/a", "Cache-Control: only-if-cached").body)
}

func TestClientsCannotKeepTheHandlerBusy(t *testing.T) {
	for _, obey := range []bool{false, true} {
		g := newGate(t)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Cache-Control") != "" {
				g.pass()
			}
			say(w, "hello", minute)
		}, replicas(2), options(middleware.Options{Obey: obey}))
		s.get("/a")
		wait := s.crowd(100, "/a", "Cache-Control: no-cache")
		if obey {
			g.wait(t)
			s.settle()
			g.free()
		}
		assert.Equal(t, map[string]int{"200 hello": 100}, bodies(wait()))
		want := int64(1)
		if obey {
			want = 2
		}
		assert.Equal(t, want, s.runs.Load(), "those who insist are one run")
	}
}

func TestAnObeyedClientGetsWhatHeDemands(t *testing.T) {
	t.Parallel()
	s := serve(t, text("hello", minute), options(middleware.Options{Obey: true}))
	s.get("/a")
	assert.True(t, s.get("/a").hit())
	time.Sleep(1100 * time.Millisecond)
	for i, demand := range []string{"no-cache", "no-store", "min-fresh=100"} {
		a := s.get("/a", "Cache-Control: "+demand)
		assert.False(t, a.hit(), demand)
		assert.EqualValues(t, 2+i, s.runs.Load(), demand)
	}
	assert.True(t, s.get("/a", "Cache-Control: max-age=60").hit())
}

// What those who said who they are may share is as stored as anything.
func TestAnObeyedClientIsNotGivenWhatAnotherKeyHas(t *testing.T) {
	for says, common := range map[string]bool{"nothing else is stored": false, "nor is what is stored good enough": true} {
		t.Run(says, func(t *testing.T) {
			s := serve(t, text("hello", "Cache-Control: public, max-age=60"), options(middleware.Options{Obey: true}))
			if common {
				s.get("/a")
			}
			s.get("/a", "Authorization: b")
			ran := s.runs.Load()
			s.get("/a", "Cache-Control: no-cache")
			assert.Equal(t, ran+1, s.runs.Load())
		})
	}
}

func TestStoredResponsesGetATagIfAsked(t *testing.T) {
	s := serve(t, text("hello", minute), options(middleware.Options{Tag: true}))
	first := s.get("/a")
	etag := first.header.Get("ETag")
	require.NotEmpty(t, etag)
	assert.Equal(t, 304, s.get("/a", "If-None-Match: "+etag).status)
}

func TestARequestWhoseKeyFailsPassesByAlone(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { g.pass(); say(w, "hello", minute) },
		options(middleware.Options{Key: middleware.Key{Add: func(r *http.Request) (string, error) { return "", assert.AnError }}}))
	wait := s.crowd(5, "/a")
	for range 5 {
		g.wait(t)
	}
	g.free()
	assert.Equal(t, map[string]int{"200 hello": 5}, bodies(wait()))
	assert.False(t, s.get("/a").hit())
}

func TestThePolicyHoldsWhereTheHandlerSaysNothing(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if f := r.Header.Get("X-Say"); f != "" {
			set(w, "Cache-Control: "+f)
		}
		say(w, "hello")
	}, policy(stale.Policy{Fresh: time.Minute}))
	assert.Equal(t, "Bellwether;fwd=uri-miss;stored", s.get("/a").how())
	assert.True(t, s.get("/a").hit())
	for _, forbidden := range []string{"private", "no-store", "no-cache", "max-age=0"} {
		s.get("/"+forbidden, "X-Say: "+forbidden)
		assert.False(t, s.get("/"+forbidden, "X-Say: "+forbidden).hit(), forbidden)
	}
}

// stale-if-error is for errors, and there is none where nobody was asked.
func TestWhoeverWantsOnlyWhatIsStoredGetsNothingThatIsOnlyGoodForAnError(t *testing.T) {
	t.Parallel()
	s := serve(t, text("hello", "Cache-Control: max-age=1, stale-if-error=60"))
	s.get("/a")
	time.Sleep(1100 * time.Millisecond)
	assert.Equal(t, http.StatusGatewayTimeout, s.get("/a", "Cache-Control: only-if-cached").status)
}

func TestWhatIsNotForACacheReachesTheHandler(t *testing.T) {
	s := serve(t, text("hello", minute, tag))
	s.get("/a")
	for field, why := range map[string]string{
		"Upgrade: h2c":                        "upgrade",
		"Accept: text/html,text/event-stream": "stream",
		`If-Match: "1"`:                       "condition",
		"If-Unmodified-Since: " + at(0):       "condition",
	} {
		ran := s.runs.Load()
		assert.Equal(t, "Bellwether;fwd=bypass;detail="+why, s.get("/a", field).how(), field)
		assert.Equal(t, ran+1, s.runs.Load(), field)
	}
}
