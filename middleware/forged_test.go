package middleware_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

// What stands in the store was perhaps put there by another.
var forged = map[string]middleware.Response{
	"nothing":                 {},
	"no final status":         {Status: 101, Fresh: time.Hour},
	"a negative status":       {Status: -200, Fresh: time.Hour},
	"a status of four digits": {Status: 1000, Fresh: time.Hour},
	"half a body":             {Status: 200, Header: http.Header{"Content-Length": {"9"}}, Body: []byte("half"), Fresh: time.Hour},
	"more than its body":      {Status: 200, Header: http.Header{"Content-Length": {"1"}}, Body: []byte("more"), Fresh: time.Hour},
	"a way to itself":         {Generation: "x"},
	"a way to nowhere":        {Generation: "x", Vary: []string{"", "\r\n", "*", strings.Repeat("x", 10_000)}},
	"another's, and overflow": {Status: 200, Fresh: -1 << 63, WhileRevalidate: -1 << 63, Age: 1<<63 - 1, Body: []byte("hello")},
}

// forger is a codec that doesn't look at what it writes.
type forger struct{ at atomic.Bool }

func (f *forger) Encode(r middleware.Response) ([]byte, error) { return r.MarshalBinary() }

func (f *forger) Decode(b []byte) (r middleware.Response, err error) {
	if err = r.UnmarshalBinary(b); f.at.Load() {
		err = nil
	}
	return r, err
}

func TestAForgedResponseIsNotServedAsAWhole(t *testing.T) {
	for name, r := range forged {
		t.Run(name, func(t *testing.T) {
			f := &forger{}
			s := serve(t, text("hello", minute), func(s *setup) { s.cache.Codec = f })
			key, err := middleware.Of(middleware.Key{}, s.request(0, "GET", "/a"))
			require.NoError(t, err)
			f.at.Store(true)
			require.NoError(t, s.caches[0].Set(t.Context(), key, r))
			f.at.Store(false)
			for _, fields := range [][]string{nil, {"Range: bytes=1-2"}, {"If-None-Match: *"}, {"Cache-Control: max-age=0"}} {
				for _, method := range []string{"GET", "HEAD"} {
					a := s.send(method, "/a", fields...)
					require.NoError(t, a.err, fields)
					assert.Contains(t, []int{200, 206, 304}, a.status, fields)
				}
			}
			s.stored("/a")
			assert.Equal(t, "hello", s.get("/a").body)
		})
	}
}

func TestBytesThatAreNoResponseAreMadeAnew(t *testing.T) {
	server, real := onRedis(t)
	s := serve(t, text("hello", minute, "Vary: X-Me"), real, policy(stale.Policy{Fresh: time.Minute}))
	s.at(0, "/a")
	s.stored("/a")
	rdb := redistest.Client(t, server)
	for key := range redistest.Keys(t, rdb) {
		fields, err := rdb.HGetAll(t.Context(), key).Result()
		if err != nil {
			continue // no hash: nothing that is decoded
		}
		for field, value := range fields {
			if len(value) > 40 { // an entry, not a number
				bad := []byte(value)
				bad[len(bad)-1] ^= 1
				require.NoError(t, rdb.HSet(t.Context(), key, field, bad).Err())
			}
		}
	}
	before := s.runs.Load()
	for replica := range 2 {
		a := s.at(replica, "/a")
		require.NoError(t, a.err)
		assert.Equal(t, "hello", a.body)
	}
	assert.Greater(t, s.runs.Load(), before)
	s.stored("/a")
}
