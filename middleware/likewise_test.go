package middleware_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a handler does has the effect that it has without the middleware.

// bare has the same handler on a server without the middleware, too.
func bare(t *testing.T, h http.HandlerFunc) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheTypeOfABodyIsGuessedFromAsMuchOfItAsWithout(t *testing.T) {
	for name, parts := range map[string][]string{
		"a page in parts":          {"\n", "<!DOC", "TYPE html>", "<p>hello"},
		"a page after its comment": {" ", "<", "!-- x -->", "<p>"},
		"bytes after a character":  {"a", "\x00\x01"},
		"text":                     {"hello ", "world"},
		"nothing at first":         {"", "<html>"},
		"a picture":                {"\x89PNG\x0D", "\x0A\x1A\x0A"},
		"nothing":                  {""},
	} {
		h := func(w http.ResponseWriter, r *http.Request) {
			set(w, minute)
			for i, part := range parts {
				_, _ = io.WriteString(w, part)
				if r.URL.Path == "/slow" && i == 0 && strings.TrimSpace(part) == "" {
					time.Sleep(50 * time.Millisecond)
				}
			}
		}
		s, url := serve(t, h), bare(t, h)
		for _, path := range []string{"/quick", "/slow"} {
			resp, err := http.Get(url + path)
			require.NoError(t, err)
			resp.Body.Close()
			for range 2 {
				a := s.get(path)
				assert.Equal(t, resp.Header["Content-Type"], a.header["Content-Type"], name+path)
				assert.Equal(t, strings.Join(parts, ""), a.body)
			}
		}
	}
}

func TestAFlushedHeaderReachesTheClientBeforeThereIsABody(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, minute, "Content-Type: text/plain")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		g.pass()
		say(w, "hello\n")
	})
	header := make(chan *stream, 1)
	go func() { header <- s.open(0, "/a") }()
	select {
	case c := <-header:
		g.free()
		assert.Equal(t, "hello", c.line())
	case <-time.After(patience):
		t.Fatal("no header")
	}
}

func TestASecondStatusIsIgnored(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, minute)
		w.WriteHeader(http.StatusTeapot)
		w.WriteHeader(0)
		w.WriteHeader(http.StatusOK)
	})
	assert.Equal(t, http.StatusTeapot, s.get("/a").status)
}

func TestTrailersOfAnErrorReachItsClient(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, "Trailer: X-End")
		w.WriteHeader(http.StatusServiceUnavailable)
		say(w, "closed")
		set(w, "X-End: 1")
	})
	c := s.open(0, "/a")
	_, err := io.ReadAll(c.Body)
	require.NoError(t, err)
	assert.Equal(t, http.Header{"X-End": {"1"}}, c.Trailer)
}
