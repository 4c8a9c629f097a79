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
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/middleware"
)

// Redis stops answering, or is gone, while requests are under way: each still gets an answer that is for him.
func TestWhateverBecomesOfRedisMeanwhileNobodyGetsWhatIsNotForHim(t *testing.T) {
	for name, field := range map[string]string{"private": "Cache-Control: private", "varying": minute + "|Vary: X-Me"} {
		for _, killed := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " killed: ", killed), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t)
				g := newGate(t)
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					g.pass()
					say(w, r.Header.Get("X-Me"), lines(field)...)
				}, replicas(2), func(s *setup) {
					s.store = func() cache.Store {
						rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
						t.Cleanup(func() { _ = rdb.Close() })
						return redisstore.New(rdb, redisstore.Options{Prefix: "t"})
					}
				})
				var waits []func() []answer
				for i := range 4 {
					waits = append(waits, s.crowd(2, "/a", fmt.Sprint("X-Me: ", i)))
				}
				g.wait(t)
				s.settle()
				if killed {
					require.NoError(t, server.Kill())
				} else {
					require.NoError(t, server.Pause())
				}
				g.free()
				for i, wait := range waits {
					for _, a := range wait() {
						require.NoError(t, a.err)
						assert.Equal(t, 200, a.status)
						assert.Equal(t, fmt.Sprint(i), a.body)
						assert.Less(t, a.took, 10*time.Second)
					}
				}
				if killed {
					require.NoError(t, server.Restart())
				} else {
					require.NoError(t, server.Resume())
				}
				for i := range 4 {
					a := s.at(i%2, "/a", fmt.Sprint("X-Me: ", i))
					require.NoError(t, a.err)
					assert.Equal(t, fmt.Sprint(i), a.body)
				}
			})
		}
	}
}

// A response whose handler began before a purge is stored by nobody, in whichever replica it is still under way.
func TestAResponseFromBeforeAPurgeIsNotStoredAfterIt(t *testing.T) {
	t.Parallel()
	for _, field := range []string{minute, minute + "|Vary: X-Me", "Cache-Control: public, max-age=60"} {
		_, real := onRedis(t)
		var version atomic.Int64
		g := newGate(t)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body := fmt.Sprint("version ", version.Load())
			if r.Method == "GET" && version.Load() == 0 {
				g.pass()
			}
			say(w, body, lines(field)...)
		}, real)
		me := []string{"X-Me: 1"}
		if field == "Cache-Control: public, max-age=60" {
			me = append(me, "Cookie: a")
		}
		var early []func() []answer
		early = append(early, s.crowd(4, "/a", me...), s.crowd(4, "/b", me...))
		g.wait(t)
		g.wait(t)
		s.settle()
		version.Store(1)
		assert.Equal(t, 200, s.send("PUT", "/a").status)
		require.NoError(t, middleware.Purge(t.Context(), s.caches[1], middleware.Options{}, "http://site.test/b"))
		late := append([]func() []answer{}, s.crowd(4, "/a", me...), s.crowd(4, "/b", me...))
		s.settle()
		g.free()
		for _, wait := range late {
			assert.Equal(t, map[string]int{"200 version 1": 4}, bodies(wait()), field)
		}
		for _, wait := range early {
			wait()
		}
		s.settle()
		for replica := range 2 {
			for _, path := range []string{"/a", "/b"} {
				assert.Equal(t, "version 1", s.at(replica, path, me...).body, field)
				assert.Equal(t, "version 1", s.at(replica, path).body, field)
			}
		}
	}
}
