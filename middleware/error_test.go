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

// A failing handler is run once for all who wait, wherever they are, and all get its status.
func TestAnErrorIsOneErrorForAllWhoWait(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		g.pass()
		w.WriteHeader(http.StatusServiceUnavailable)
		say(w, "we are closed")
	}, replicas(2))
	wait := s.crowd(20, "/a")
	g.wait(t)
	s.settle()
	g.free()
	got := bodies(wait())
	assert.EqualValues(t, 1, s.runs.Load())
	assert.Equal(t, map[string]int{"503 we are closed": 10, "503 Service Unavailable\n": 10}, got)
	assert.Equal(t, 503, s.get("/a").status)
	assert.EqualValues(t, 2, s.runs.Load(), "it is not remembered")
}

func TestAnErrorThatIsForOneAloneIsNotShared(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"Cache-Control: private", "Set-Cookie: a=b", "Vary: X-Me", "Cache-Control: must-revalidate"} {
		g := newGate(t)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			g.pass()
			set(w, field)
			w.WriteHeader(http.StatusInternalServerError)
			say(w, r.Header.Get("X-Me"))
		})
		a := s.crowd(1, "/a", "X-Me: a", "Authorization: a") // must-revalidate shares what is for whom that names, RFC 9111 §3.5
		g.wait(t)
		b := s.crowd(1, "/a", "X-Me: b", "Cookie: b")
		s.settle()
		g.free()
		assert.Equal(t, "a", a()[0].body, field)
		assert.Equal(t, "b", b()[0].body, field)
	}
}

// trouble is a handler that has a good answer until it is told to fail.
type trouble struct {
	fails atomic.Pointer[func(w http.ResponseWriter)]
	good  []string
}

func (f *trouble) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fail := f.fails.Load(); fail != nil {
		(*fail)(w)
		return
	}
	say(w, "good", f.good...)
}

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(code); say(w, "bad") }
}

func TestAStaleResponseStandsInForAnError(t *testing.T) {
	for name, fail := range map[string]func(http.ResponseWriter){
		"500": status(500), "502": status(502), "503": status(503), "504": status(504),
		"panic": func(http.ResponseWriter) { panic("boom") },
		"abort": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"torn":  func(w http.ResponseWriter) { say(w, "half", minute, "Content-Length: 9") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &trouble{good: []string{"Cache-Control: max-age=1, stale-if-error=60"}}
			s := serve(t, f.ServeHTTP, replicas(2))
			assert.Equal(t, "good", s.get("/a").body)
			f.fails.Store(&fail)
			time.Sleep(1100 * time.Millisecond)
			for replica := range 2 {
				a := s.at(replica, "/a")
				require.NoError(t, a.err)
				assert.Equal(t, "good", a.body)
				assert.Equal(t, 200, a.status)
				assert.Contains(t, a.how(), "hit;ttl=-")
			}
			assert.Greater(t, s.runs.Load(), int64(1), "it was asked")
			f.fails.Store(nil)
			assert.Equal(t, "good", s.get("/a").body)
		})
	}
}

func TestAnAnswerThatIsNoFailureIsNotHiddenByAStaleOne(t *testing.T) {
	for _, code := range []int{301, 401, 403, 404, 410, 429, 501} {
		f := &trouble{good: []string{"Cache-Control: max-age=0, stale-if-error=60"}}
		s := serve(t, f.ServeHTTP)
		assert.Equal(t, "good", s.get("/a").body)
		fail := status(code)
		f.fails.Store(&fail)
		assert.Equal(t, code, s.get("/a").status)
	}
}

func TestWhatMustBeRevalidatedIsNeverServedStale(t *testing.T) {
	for _, must := range []string{"must-revalidate", "proxy-revalidate", "s-maxage=1", "no-cache"} {
		t.Run(must, func(t *testing.T) {
			t.Parallel()
			f := &trouble{good: []string{"Cache-Control: max-age=1, stale-if-error=60, stale-while-revalidate=60, " + must}}
			s := serve(t, f.ServeHTTP)
			assert.Equal(t, "good", s.get("/a").body)
			fail := status(503)
			f.fails.Store(&fail)
			time.Sleep(1100 * time.Millisecond)
			assert.Equal(t, 503, s.get("/a").status)
		})
	}
}

// stale-if-error is about errors: it lets nobody have an old answer because a new one is on its way.
func TestNobodyGetsAStaleResponseInPlaceOfAWait(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slow") != "" {
			g.pass()
			say(w, "new", minute)
			return
		}
		say(w, "old", "Cache-Control: max-age=1, stale-if-error=60")
	}, replicas(2))
	assert.Equal(t, "old", s.get("/a").body)
	time.Sleep(1100 * time.Millisecond)
	wait := s.crowd(20, "/a", "X-Slow: 1")
	g.wait(t)
	s.settle()
	g.free()
	assert.Equal(t, map[string]int{"200 new": 20}, bodies(wait()))
	assert.EqualValues(t, 2, s.runs.Load())
}

func TestAStaleResponseIsServedWhileItIsMadeAnew(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slow") != "" {
			g.pass()
			say(w, "new", minute)
			return
		}
		say(w, "old", "Cache-Control: max-age=1, stale-while-revalidate=60")
	}, replicas(2))
	assert.Equal(t, "old", s.get("/a").body)
	time.Sleep(1100 * time.Millisecond)
	got := s.crowd(20, "/a", "X-Slow: 1")()
	assert.Equal(t, map[string]int{"200 old": 20}, bodies(got))
	for _, a := range got {
		assert.Contains(t, a.how(), "hit;ttl=")
	}
	g.wait(t)
	g.free()
	require.Eventually(t, func() bool { return s.get("/a").body == "new" }, patience, tick)
	assert.EqualValues(t, 2, s.runs.Load(), "one run behind the answers, whose clients have gone")
}

// Behind an answer there is no client that a response for one alone could go to.
func TestAPrivateResponseBehindAnAnswerGoesNowhere(t *testing.T) {
	t.Parallel()
	var private atomic.Bool
	wrote := make(chan error, 10)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !private.Load() {
			say(w, "old", "Cache-Control: max-age=1, stale-while-revalidate=60")
			return
		}
		set(w, "Cache-Control: private")
		_, err := w.Write([]byte("mine"))
		<-r.Context().Done()
		wrote <- err
	})
	assert.Equal(t, "old", s.get("/a").body)
	private.Store(true)
	time.Sleep(1100 * time.Millisecond)
	assert.Equal(t, "old", s.get("/a").body)
	select {
	case err := <-wrote:
		assert.Error(t, err)
	case <-time.After(patience):
		t.Fatal("the handler goes on for nobody")
	}
}

func TestErrorsAreNotStoredUnlessTheyHaveALifetime(t *testing.T) {
	for code, stored := range map[int]bool{500: false, 503: false, 404: true, 403: false, 429: false, 301: true, 204: true} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
		}, policy(stale.Policy{Fresh: time.Minute, Negative: time.Second}))
		s.get("/a")
		assert.Equal(t, stored, s.get("/a").hit(), "%d", code)
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { set(w, minute); w.WriteHeader(503) })
	s.get("/a")
	assert.True(t, s.get("/a").hit(), "it says so")
	s = serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(429) },
		options(middleware.Options{Statuses: map[int]time.Duration{429: time.Minute}}))
	s.get("/a")
	assert.True(t, s.get("/a").hit(), "the options say so")
}
