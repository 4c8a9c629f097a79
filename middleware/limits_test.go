package middleware_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

// What one client can't do to the others: his error does not free its key, so that they go on waiting for each other.
func TestAnErrorWithoutALifetimeIsNotStoredAndDoesNotFreeItsKey(t *testing.T) {
	for _, c := range []struct {
		status int
		o      middleware.Options
		want   string // of the one who asks next
	}{
		{400, middleware.Options{}, "Bellwether;fwd=uri-miss;detail=no-lifetime"},
		{404, middleware.Options{Policy: stale.Policy{Fresh: time.Minute}}, "Bellwether;fwd=uri-miss;detail=no-lifetime"},
		{404, middleware.Options{Policy: stale.Policy{Negative: time.Minute}}, "Bellwether;hit;ttl="},
		{410, middleware.Options{Policy: stale.Policy{Negative: time.Minute}}, "Bellwether;hit;ttl="},
		{400, middleware.Options{Policy: stale.Policy{Negative: time.Minute}}, "Bellwether;fwd=uri-miss;detail=no-lifetime"},
		{400, middleware.Options{Statuses: map[int]time.Duration{400: time.Minute}}, "Bellwether;hit;ttl="},
		{404, middleware.Options{Policy: stale.Policy{Negative: time.Minute}, Statuses: map[int]time.Duration{404: 0}}, "Bellwether;fwd=uri-miss;detail=no-lifetime"},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { code(c.status)(w, "") }, options(c.o))
		s.get("/a")
		assert.Equal(t, c.want, strings.TrimRight(s.get("/a").how(), "0123456789"), "%d, %+v", c.status, c.o)
	}
}

func TestInPolicyModeAFlushedResponseIsAStream(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, "begin ")
		if r.URL.Path == "/flushed" {
			_ = http.NewResponseController(w).Flush()
		}
		say(w, "end")
	}, policy(stale.Policy{Fresh: time.Minute}))
	for path, stored := range map[string]bool{"/whole": true, "/flushed": false} {
		s.get(path)
		again := s.get(path)
		assert.Equal(t, "begin end", again.body)
		assert.Equal(t, stored, again.hit(), path)
	}
}

func TestHeadsAndPartsOfWhatIsNotStoredAreEachAskedFor(t *testing.T) {
	s := serve(t, text("hello", minute))
	for i, ask := range []func() answer{
		func() answer { return s.send("HEAD", "/a") },
		func() answer { return s.get("/a", "Range: bytes=0-1") },
		func() answer { return s.send("HEAD", "/a") },
	} {
		assert.Equal(t, "Bellwether;fwd=miss", ask().how())
		assert.EqualValues(t, i+1, s.runs.Load())
	}
}

func TestInPolicyModeWhoSaysWhoHeIsGetsNoSharedResponse(t *testing.T) {
	s := serve(t, text("hello"), policy(stale.Policy{Fresh: time.Minute}))
	s.stored("/a")
	for _, field := range []string{"Cookie: a=b", "Authorization: Basic YTpi"} {
		assert.False(t, s.get("/a", field).hit(), field)
	}
	assert.True(t, s.get("/a").hit(), "the others still share theirs")
}

// A handler behind an authentication of its own can have all who are let in share what no cache outside may store.
func TestAFieldForThisCacheAloneAllowsWhatOtherCachesMayNot(t *testing.T) {
	fields := []string{"Cache-Control: private", "Bellwether-Cache-Control: max-age=60, public"}
	s := serve(t, text("hello", fields...), options(middleware.Options{Targeted: []string{"Bellwether-Cache-Control"}}))
	s.get("/a", "Authorization: Basic YTpi")
	for _, who := range []string{"Authorization: Basic Yjpj", "Cookie: a=b"} {
		got := s.get("/a", who)
		assert.True(t, got.hit(), who)
		assert.Equal(t, "private", got.header.Get("Cache-Control"))
	}
}
