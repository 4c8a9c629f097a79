package middleware_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/middleware"
)

// Fields that are for one client, or about one request, stay with him: an error is shared without them, too.
func TestAnErrorIsSharedWithoutTheFieldsThatAreForOneAlone(t *testing.T) {
	for _, except := range []string{"private", "no-cache"} {
		g := newGate(t)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			g.pass()
			set(w, "Cache-Control: "+except+`="Set-Cookie"`, "Set-Cookie: id="+r.Header.Get("X-Me"), "X-Request-Id: 1", "Connection: X-Hop", "X-Hop: 1", "X-All: 1")
			w.WriteHeader(http.StatusServiceUnavailable)
			say(w, "closed")
		}, options(middleware.Options{Drop: []string{"X-Request-Id"}}))
		leader := s.crowd(1, "/a", "X-Me: a")
		g.wait(t)
		waiter := s.crowd(1, "/a", "X-Me: b")
		s.settle()
		g.free()
		assert.Equal(t, "id=a", leader()[0].header.Get("Set-Cookie"))
		b := waiter()[0]
		assert.Equal(t, "closed", b.body)
		assert.Contains(t, b.how(), "collapsed")
		assert.Equal(t, "1", b.header.Get("X-All"))
		for _, field := range []string{"Set-Cookie", "X-Request-Id", "X-Hop"} {
			assert.Empty(t, b.header[field], field)
		}
	}
}

// What a response depends on holds even if it may not be passed on.
func TestAVaryThatIsNotStoredStillCounts(t *testing.T) {
	for _, field := range []string{`Cache-Control: private="Vary", max-age=60`, `Cache-Control: no-cache="vary", max-age=60`, minute + "|Connection: Vary"} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, r.Header.Get("X-Me"), append(lines(field), "Vary: X-Me")...)
		})
		for range 2 {
			for _, me := range []string{"a", "b"} {
				assert.Equal(t, me, s.get("/a", "X-Me: "+me).body, field)
			}
		}
	}
}
