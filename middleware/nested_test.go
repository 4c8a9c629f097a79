package middleware_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

// plainBody is what a client gets who reads a possibly compressed answer.
func plainBody(t *testing.T, a answer) string {
	if a.header.Get("Content-Encoding") != "gzip" {
		return a.body
	}
	z, err := gzip.NewReader(strings.NewReader(a.body))
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(b)
}

func TestCompressionWorksOutsideAndInside(t *testing.T) {
	body := strings.Repeat("hello ", 1000)
	compress := chimiddleware.Compress(5)
	for name, change := range map[string]func(*setup){
		"outside": around(compress),
		"inside":  func(*setup) {},
	} {
		h := http.HandlerFunc(text(body, minute, "Content-Type: text/plain"))
		if name == "inside" {
			inner := compress(h)
			h = inner.ServeHTTP
		}
		s := serve(t, h, change, replicas(2))
		for i := range 3 {
			for _, accept := range []string{"gzip", "identity", ""} {
				a := s.at(i%2, "/a", "Accept-Encoding: "+accept)
				require.NoError(t, a.err)
				assert.Equal(t, accept == "gzip", a.header.Get("Content-Encoding") == "gzip", name+accept)
				assert.Equal(t, body, plainBody(t, a))
			}
		}
		assert.LessOrEqual(t, s.runs.Load(), int64(2), name)
	}
}

func TestATimeoutHandlerWorksOutsideAndInside(t *testing.T) {
	t.Parallel()
	limit := func(next http.Handler) http.Handler {
		return http.TimeoutHandler(next, 300*time.Millisecond, "too slow")
	}
	for _, place := range []string{"outside", "inside"} {
		g := newGate(t)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			say(w, "first ", minute)
			if r.URL.Path == "/slow" {
				g.pass()
			}
			say(w, "last")
		})
		change := around(limit)
		if place == "inside" {
			inner := limit(h)
			h, change = inner.ServeHTTP, func(*setup) {}
		}
		s := serve(t, h, change)
		assert.Equal(t, "first last", s.get("/quick").body)
		assert.True(t, s.get("/quick").hit())
		for _, a := range s.crowd(4, "/slow")() {
			assert.Equal(t, http.StatusServiceUnavailable, a.status)
			assert.Equal(t, "too slow", a.body)
		}
		g.free()
		require.Eventually(t, func() bool { return s.get("/slow").body == "first last" }, patience, tick, place)
	}
}

func TestAMiddlewareInsideAnotherOverTheSameCacheIsHarmless(t *testing.T) {
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	require.NoError(t, err)
	defer responses.Close()
	use := middleware.New(responses, middleware.Options{})
	s := serve(t, text("unused"), around(func(http.Handler) http.Handler { return use(use(http.HandlerFunc(text("hello", minute)))) }))
	for range 3 {
		assert.Equal(t, map[string]int{"200 hello": 5}, bodies(s.crowd(5, "/a")()))
	}
	assert.Contains(t, s.get("/a").header["Cache-Status"][1], ";hit", "of the outer one")
}

func TestWithoutAPrefixTwoPartsOfASiteAreKeptApartBySpace(t *testing.T) {
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	require.NoError(t, err)
	defer responses.Close()
	mux := http.NewServeMux()
	for _, name := range []string{"one", "two"} {
		h := middleware.New(responses, middleware.Options{Key: middleware.Key{Space: name}})(text(name, minute))
		mux.Handle("/"+name+"/", http.StripPrefix("/"+name, h))
	}
	s := serve(t, text("unused"), around(func(http.Handler) http.Handler { return mux }))
	for range 2 {
		assert.Equal(t, "one", s.get("/one/a").body)
		assert.Equal(t, "two", s.get("/two/a").body)
	}
}

func TestABodyThatIsLimitedIsReadAsWithout(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 3))
		set(w, minute)
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		_, _ = w.Write(b)
	})
	for range 2 {
		for _, method := range []string{"GET", "POST", "PUT"} {
			r := s.request(0, method, "/a")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("hello")), 5
			a := s.do(r)
			assert.Equal(t, http.StatusRequestEntityTooLarge, a.status)
			assert.Equal(t, "hel", a.body)
			r = s.request(0, method, "/a")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(method[:2])), -1
			assert.Equal(t, method[:2], s.do(r).body, "chunked")
		}
		assert.Empty(t, s.get("/a").body)
	}
}
