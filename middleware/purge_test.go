package middleware_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/middleware"
)

func TestAChangeInvalidatesItsURIEverywhere(t *testing.T) {
	var version atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case "GET":
			say(w, string(rune('0'+version.Load())), minute, "Vary: X-Me")
		default:
			version.Add(1)
			if r.Header.Get("X-Fail") != "" {
				w.WriteHeader(400)
				return
			}
			w.WriteHeader(204)
		}
	}, replicas(2))
	for i, method := range []string{"POST", "PUT", "DELETE", "PATCH", "BREW"} {
		for replica := range 2 {
			for _, me := range []string{"a", "b"} {
				assert.Equal(t, string(rune('0'+i)), s.at(replica, "/a", "X-Me: "+me).body)
			}
		}
		assert.Equal(t, "Bellwether;fwd=method", s.send(method, "/a").how())
	}
	now := s.get("/a").body
	for _, request := range [][]string{{"OPTIONS", ""}, {"POST", "X-Fail: 1"}} {
		s.send(request[0], "/a", request[1])
		assert.Equal(t, now, s.get("/a").body, "nothing was changed by %s", request[0])
	}
}

func TestAPurgeRemovesAllVariantsEverywhere(t *testing.T) {
	var version atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, string(rune('0'+version.Load())), "Cache-Control: public, max-age=60", "Vary: X-Me")
	}, replicas(2))
	o := middleware.Options{}
	ask := func(want string) {
		for replica := range 2 {
			for _, fields := range [][]string{{"X-Me: a"}, {"X-Me: b"}, {"X-Me: a", "Cookie: c"}} {
				assert.Equal(t, want, s.at(replica, "/a?b=c", fields...).body)
			}
		}
	}
	ask("0")
	version.Add(1)
	ask("0")
	require.NoError(t, middleware.Purge(t.Context(), s.caches[0], o, "http://site.test/a?b=c"))
	ask("1")
	version.Add(1)
	require.NoError(t, middleware.PurgeRequest(t.Context(), s.caches[0], o, s.request(0, "POST", "/a?b=c")))
	ask("2")
	require.ErrorContains(t, middleware.Purge(t.Context(), s.caches[0], o, "/a"), `"/a" is no absolute URI`)
	require.ErrorContains(t, middleware.Purge(t.Context(), s.caches[0], o, "http://[::1"), "missing ']'")
	for _, key := range []middleware.Key{{Headers: []string{"X-Me"}}, {Add: func(*http.Request) (string, error) { return "", nil }}} {
		o := middleware.Options{Key: key}
		require.ErrorContains(t, middleware.Purge(t.Context(), s.caches[0], o, "http://site.test/a"), "use PurgeRequest", "no URI has that key")
	}
	require.NoError(t, s.caches[0].Close())
	require.Error(t, middleware.Purge(t.Context(), s.caches[0], o, "http://site.test/a"), "it is told")
}

// Routers of the older kind cut the path as they go.
func TestAChangeInvalidatesWhatItWasSentToWhateverItsHandlerMakesOfTheRequest(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.Method = "/", "GET"
		r.Host = "other"
		r.Header.Del("X-Tenant")
		say(w, "hello", minute)
	}, options(middleware.Options{Key: middleware.Key{Headers: []string{"X-Tenant"}}}))
	s.get("/a", "X-Tenant: 1")
	assert.True(t, s.get("/a", "X-Tenant: 1").hit())
	s.send("POST", "/a", "X-Tenant: 1")
	assert.False(t, s.get("/a", "X-Tenant: 1").hit())
}
