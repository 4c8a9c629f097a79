package middleware_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/middleware"
)

func TestABodyOfMaxBodyIsStoredAndOneByteMoreIsNot(t *testing.T) {
	const most = 5000
	for _, size := range []int{0, most - 1, most, most + 1, 3 * most} {
		for _, parts := range []int{1, 2, 7} {
			for _, said := range []bool{true, false} {
				body := strings.Repeat("x", size)
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					set(w, minute)
					if said {
						set(w, fmt.Sprint("Content-Length: ", size))
					}
					for i := range parts {
						n, err := io.WriteString(w, body[i*size/parts:(i+1)*size/parts])
						assert.NoError(t, err)
						assert.Equal(t, (i+1)*size/parts-i*size/parts, n)
					}
				}, options(middleware.Options{MaxBody: most}))
				for range 2 {
					a := s.get("/a")
					require.NoError(t, a.err)
					assert.Equal(t, body, a.body)
				}
				assert.Equal(t, size <= most, s.get("/a").hit(), "%d in %d parts, said: %v", size, parts, said)
			}
		}
	}
}

// A HEAD is complete with its header, whatever becomes of the body that the handler makes for the others.
func TestAHeadThatHasTheHandlerMakeTheWholeIsNotBrokenOff(t *testing.T) {
	t.Parallel()
	for name, rest := range map[string]int{"stored": 10, "over MaxBody": 5000} {
		var aborted atomic.Int64
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Slow") == "" {
				say(w, "old", "Cache-Control: max-age=1, stale-if-error=60")
				return
			}
			say(w, "new", minute, "Content-Type: text/plain")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond)
			say(w, strings.Repeat("x", rest))
			time.Sleep(100 * time.Millisecond)
		}, options(middleware.Options{MaxBody: 1000}), around(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					if p := recover(); p != nil {
						aborted.Add(1)
						panic(p)
					}
				}()
				next.ServeHTTP(w, r)
			})
		}))
		s.get("/a")
		time.Sleep(1100 * time.Millisecond)
		for range 3 { // on one connection, if it holds
			a := s.send("HEAD", "/a", "X-Slow: 1")
			require.NoError(t, a.err, name)
			assert.Equal(t, 200, a.status, name)
		}
		assert.NotContains(t, s.logs.String(), "panic", name)
		assert.Zero(t, aborted.Load(), name)
	}
}

// Whatever a handler says of the length of its body, nobody takes a part for the whole.
func TestALengthThatIsALieIsNobodysWhole(t *testing.T) {
	for said, client := range map[string]string{"4": "torn", "6": "torn", "5": "whole", "-1": "whole", "x": "whole", "": "whole", "99999999999999999999": "whole"} {
		h := func(w http.ResponseWriter, r *http.Request) {
			set(w, minute)
			w.Header()["Content-Length"] = []string{said}
			_, _ = io.WriteString(w, "hel")
			_, _ = io.WriteString(w, "lo")
		}
		s := serve(t, h)
		for range 3 {
			a := s.get("/a")
			if client == "whole" {
				require.NoError(t, a.err, said)
				assert.Equal(t, "hello", a.body, said)
				continue
			}
			assert.Error(t, a.err, said)
			assert.False(t, a.hit(), said)
		}
	}
	for _, status := range []int{204, 304, 205} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			set(w, minute)
			w.WriteHeader(status)
			_, err := io.WriteString(w, "no body")
			if status != 205 {
				assert.ErrorIs(t, err, http.ErrBodyNotAllowed)
			}
		})
		for range 3 {
			a := s.get("/a")
			require.NoError(t, a.err)
			assert.Equal(t, status, a.status)
			if status != 205 {
				assert.Empty(t, a.body)
			}
		}
	}
}

// What the first of them is asked for and leaves, over and over, costs the others nothing but the wait.
func TestClientsThatComeAndGoDoNotKeepTheOthersFromAnAnswer(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(100 * time.Millisecond)
		say(w, "hello", minute)
	}, replicas(2))
	for range 20 {
		ctx, leave := context.WithTimeout(t.Context(), 5*time.Millisecond)
		s.do(s.request(0, "GET", "/a").WithContext(ctx))
		leave()
	}
	assert.Equal(t, map[string]int{"200 hello": 20}, bodies(s.crowd(20, "/a")()))
	assert.LessOrEqual(t, s.runs.Load(), int64(21))
}

// Case 88: only GET and HEAD have anything to do with what is stored.
func TestOtherMethodsReachTheHandlerEachForItselfWhileAGetIsStoredOrMade(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" {
			g.pass()
		}
		say(w, r.Method, minute)
	}, replicas(2))
	made := s.crowd(4, "/a")
	g.wait(t)
	var sent int64 = 1
	for range 2 { // while it is made, and while it is stored
		for _, method := range []string{"OPTIONS", "PROPFIND", "TRACE", "HEAD"} {
			for range 3 {
				a := s.send(method, "/a")
				if g.isOpen() && method == "HEAD" {
					assert.True(t, a.hit())
					continue
				}
				sent++
				assert.False(t, a.hit(), method)
				if method != "HEAD" {
					assert.Equal(t, method, a.body)
				}
			}
		}
		g.free()
		made()
		assert.Equal(t, sent, s.runs.Load())
		assert.Equal(t, "GET", s.get("/a").body)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		for range 3 {
			assert.Equal(t, method, s.send(method, "/a").body)
		}
		assert.Equal(t, "GET", s.get("/a").body)
	}
}

// Case 90: whoever makes up URIs costs the handler no more at once than allowed, and leaves nothing in the process.
func TestMadeUpURIsAreBounded(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		for m := most.Load(); m < n && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		now.Add(-1)
		say(w, r.URL.RawQuery, minute)
	}, func(s *setup) { s.cache.MaxComputes = 4 })
	var clients sync.WaitGroup
	for client := range 20 {
		clients.Go(func() {
			for i := range 30 {
				q := fmt.Sprint("q=", client, "-", i)
				assert.Equal(t, q, s.get("/a?"+q).body)
			}
		})
	}
	clients.Wait()
	assert.LessOrEqual(t, most.Load(), int64(4))
	assert.Zero(t, s.caches[0].Oldest())
	r := middleware.Options{Key: middleware.Key{AllowQuery: []string{"page"}}}
	s = serve(t, func(w http.ResponseWriter, r *http.Request) { say(w, "hello", minute) }, options(r))
	for i := range 100 {
		s.get(fmt.Sprint("/a?made-up=", i))
	}
	assert.EqualValues(t, 1, s.runs.Load())
}
