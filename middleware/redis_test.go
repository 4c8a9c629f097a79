package middleware_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/middleware"
)

// onRedis gives each replica a client of its own to one real server.
func onRedis(t *testing.T) (*redisserver.Server, func(*setup)) {
	server := redistest.Start(t)
	return server, func(s *setup) {
		s.replicas = 2
		s.store = func() cache.Store {
			rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
			t.Cleanup(func() { _ = rdb.Close() })
			return redisstore.New(rdb, redisstore.Options{Prefix: "t", Budget: 5 * time.Second})
		}
	}
}

func TestOnRedisAHerdIsOneRunAndAHitOneCommand(t *testing.T) {
	server, real := onRedis(t)
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { g.pass(); say(w, "hello", minute) }, real)
	wait := s.crowd(100, "/a")
	g.wait(t)
	s.settle()
	g.free()
	assert.Equal(t, map[string]int{"200 hello": 100}, bodies(wait()))
	assert.EqualValues(t, 1, s.runs.Load())
	s.at(0, "/a")
	counter := redistest.Commands(t, server)
	for range 10 {
		assert.True(t, s.at(0, "/a").hit())
	}
	assert.Len(t, counter.Stop(), 10)
}

func TestOnRedisAPrivateAnswerIsNobodyElses(t *testing.T) {
	_, real := onRedis(t)
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		g.pass()
		say(w, r.Header.Get("X-Me"), "Cache-Control: private")
	}, real)
	var waits []func() []answer
	for i := range 20 {
		waits = append(waits, s.crowd(2, "/a", fmt.Sprint("X-Me: ", i)))
	}
	g.wait(t)
	s.settle()
	g.free()
	for i, wait := range waits {
		assert.Equal(t, map[string]int{fmt.Sprint("200 ", i): 2}, bodies(wait()))
	}
	assert.EqualValues(t, 40, s.runs.Load())
}

func TestOnRedisVariantsErrorsAndStaleResponsesAreThoseOfTheFleet(t *testing.T) {
	server, real := onRedis(t)
	var fails atomic.Bool
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if fails.Load() {
			w.WriteHeader(503)
			return
		}
		say(w, r.Header.Get("X-Me"), "Cache-Control: max-age=1, stale-if-error=60", "Vary: X-Me")
	}, real)
	for range 2 {
		for replica := range 2 {
			for _, me := range []string{"a", "b"} {
				assert.Equal(t, me, s.at(replica, "/a", "X-Me: "+me).body)
			}
		}
	}
	assert.EqualValues(t, 2, s.runs.Load())
	fails.Store(true)
	time.Sleep(1200 * time.Millisecond)
	for replica := range 2 {
		assert.Equal(t, "a", s.at(replica, "/a", "X-Me: a").body)
	}
	assert.Equal(t, 503, s.at(1, "/a", "X-Me: c").status)
	require.NoError(t, middleware.Purge(t.Context(), s.caches[0], middleware.Options{}, "http://site.test/a"))
	for replica := range 2 {
		assert.Equal(t, 503, s.at(replica, "/a", "X-Me: a").status)
	}
	for key, ttl := range redistest.Keys(t, redistest.Client(t, server)) {
		assert.Positive(t, ttl, "%q has no TTL", key)
	}
}

func TestWithoutRedisEachReplicaRunsTheHandlerItself(t *testing.T) {
	server, real := onRedis(t)
	unpurged := make(chan error, 10)
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Slow") != "" {
			g.pass()
		}
		say(w, "hello", minute)
	}, real, options(middleware.Options{Unpurged: func(err error) { unpurged <- err }}))
	assert.Equal(t, "hello", s.get("/a").body)
	require.NoError(t, server.Kill())
	assert.True(t, s.get("/a").hit(), "the last known value")
	wait := s.crowd(20, "/b", "X-Slow: 1")
	s.ran(3)
	s.settle()
	g.free()
	assert.Equal(t, map[string]int{"200 hello": 20}, bodies(wait()))
	assert.EqualValues(t, 3, s.runs.Load(), "merged in each replica")
	assert.Equal(t, "hello", s.send("POST", "/a").body)
	assert.ErrorContains(t, <-unpurged, "cache: Delete")
	assert.False(t, s.get("/a").hit())
	require.NoError(t, server.Restart()) // for leases to be taken back
}
