package middleware_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestEachVariantIsRunOnceAndGivenToThoseItFits(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		g.pass()
		say(w, r.Header.Get("Accept-Language"), minute, "Vary: Accept-Language")
	}, replicas(2))
	languages := []string{"en", "de", "fr"}
	var waits []func() []answer
	for _, l := range languages {
		waits = append(waits, s.crowd(10, "/a", "Accept-Language: "+l))
	}
	g.wait(t)
	s.settle()
	g.free()
	for i, wait := range waits {
		assert.Equal(t, map[string]int{"200 " + languages[i]: 10}, bodies(wait()))
	}
	assert.EqualValues(t, 3, s.runs.Load())
	for replica := range 2 {
		for _, l := range languages {
			a := s.at(replica, "/a", "Accept-Language: "+l)
			assert.True(t, a.hit())
			assert.Equal(t, l, a.body)
		}
	}
	assert.Empty(t, s.get("/a").body)
	assert.EqualValues(t, 4, s.runs.Load(), "none is a variant, too")
}

func TestCodingsThatMeanTheSameAreOneVariant(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, r.Header.Get("Accept-Encoding"), minute, "Vary: Accept-Encoding")
	})
	s.get("/a", "Accept-Encoding: gzip, br")
	assert.True(t, s.get("/a", "Accept-Encoding: br;q=0.9,gzip").hit())
	assert.False(t, s.get("/a", "Accept-Encoding: gzip;q=0").hit())
}

// What a response depends on may change with each: whoever gets one must send the same in all that it names.
func TestAResponseThatDependsOnMoreThanBeforeIsGivenToNobodyElse(t *testing.T) {
	t.Parallel()
	var fields atomic.Value
	fields.Store("X-One")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, r.Header.Get("X-One")+r.Header.Get("X-Two"), "Cache-Control: max-age=1", "Vary: "+fields.Load().(string))
	}, replicas(2))
	ask := func(one, two string) {
		for replica := range 2 {
			assert.Equal(t, one+two, s.at(replica, "/a", "X-One: "+one, "X-Two: "+two).body)
		}
	}
	assert.Equal(t, "ax", s.get("/a", "X-One: a", "X-Two: x").body)
	fields.Store("X-One, X-Two")
	time.Sleep(1100 * time.Millisecond)
	for range 2 {
		ask("a", "x")
		ask("a", "y")
		ask("b", "x")
	}
	before := s.runs.Load()
	ask("a", "y")
	assert.Equal(t, before, s.runs.Load(), "and they are found again")
}

func TestAResponseWithoutVaryAmongOthersIsKeptForItsVariant(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if me := r.Header.Get("X-Me"); me != "" {
			say(w, me, minute, "Vary: X-Me")
			return
		}
		say(w, "anybody", minute)
	})
	assert.Equal(t, "a", s.get("/a", "X-Me: a").body)
	assert.Equal(t, "anybody", s.get("/a").body)
	assert.Equal(t, "b", s.get("/a", "X-Me: b").body)
	assert.Equal(t, "anybody", s.get("/a").body)
	assert.EqualValues(t, 3, s.runs.Load())
}

// Who sends the request, and whether the response says that it is for all.
func TestOneClientsResponseIsNotAnothers(t *testing.T) {
	me := func(r *http.Request) string { return r.Header.Get("Authorization") + r.Header.Get("Cookie") }
	for _, field := range []string{"Authorization", "Cookie"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) { g.pass(); say(w, me(r), minute) }, replicas(2))
			a, b, nobody := s.crowd(4, "/a", field+": a"), s.crowd(4, "/a", field+": b"), s.crowd(4, "/a")
			g.wait(t)
			s.settle()
			g.free()
			assert.Equal(t, map[string]int{"200 a": 4}, bodies(a()))
			assert.Equal(t, map[string]int{"200 b": 4}, bodies(b()))
			assert.Equal(t, map[string]int{"200 ": 4}, bodies(nobody()))
			assert.EqualValues(t, 9, s.runs.Load(), "those who say nothing share theirs")
			assert.Equal(t, "c", s.get("/a", field+": c").body)
			assert.True(t, s.get("/a").hit())
		})
	}
}

func TestAPublicResponseIsForAllWhoeverAsked(t *testing.T) {
	public := "Cache-Control: public, max-age=60"
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { g.pass(); say(w, "all", public) }, replicas(2))
	wait := s.crowd(20, "/a", "Cookie: a", "Authorization: b")
	g.wait(t)
	s.settle()
	g.free()
	assert.Equal(t, map[string]int{"200 all": 20}, bodies(wait()))
	assert.True(t, s.get("/a", "Cookie: other").hit())
	a := s.get("/a")
	assert.Equal(t, "all", a.body)
	assert.True(t, a.hit(), "those who say nothing, too")
	assert.EqualValues(t, 1, s.runs.Load())
}

func TestAResponseThatVariesByCookieIsForThoseWithThatCookie(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, r.Header.Get("Cookie"), minute, "Vary: Cookie")
	})
	for range 2 {
		for _, c := range []string{"a", "b"} {
			assert.Equal(t, c, s.get("/a", "Cookie: "+c).body)
		}
	}
	assert.EqualValues(t, 2, s.runs.Load())
}

// The first answer of a private route makes the others go on at once; those that come soon after don't even wait for that.
func TestAPrivateRouteDoesNotMakeItsUsersQueue(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(200 * time.Millisecond)
		say(w, r.Header.Get("Cookie"), "Cache-Control: private")
	}, replicas(2))
	s.at(0, "/a", "Cookie: first")
	s.at(1, "/a", "Cookie: first")
	var waits []func() []answer
	for i := range 20 {
		waits = append(waits, s.crowd(1, "/a", fmt.Sprint("Cookie: ", i)))
	}
	for i, wait := range waits {
		a := wait()[0]
		assert.Equal(t, fmt.Sprint(i), a.body)
		assert.Less(t, a.took, time.Second)
	}
}

// What lets an answer to a request with Authorization be shared says nothing about one with a Cookie (RFC 9111 §3.5).
func TestWhatMayBeSharedDespiteOneFieldIsNotSharedDespiteAnother(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, r.Header.Get("Cookie"), "Cache-Control: max-age=60, must-revalidate")
	})
	s.get("/a", "Authorization: a")
	assert.True(t, s.get("/a", "Authorization: b").hit())
	assert.Equal(t, "c", s.get("/a", "Cookie: c").body)
	assert.Equal(t, "c", s.get("/a", "Cookie: c", "Authorization: a").body)
	assert.True(t, s.get("/a").hit(), "whoever says nothing may have it")
}
