package middleware_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

var kilobyte = bytes.Repeat([]byte("x"), 1024)

func hello(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "max-age=3600")
	h.Set("Etag", `"33a64df551425fcc55e4d42a148795d9f25f89d4"`)
	_, _ = w.Write(kilobyte)
}

// BenchmarkHit compares, over loopback connections, a handler that writes 1 KiB from memory, the same after a raw GET of 1 KiB
// from Redis, and a hit of the middleware on Redis.
func BenchmarkHit(b *testing.B) {
	server := redistest.Start(b)
	rdb := redistest.Client(b, server)
	require.NoError(b, rdb.Set(b.Context(), "raw", kilobyte, time.Hour).Err())
	responses, err := cache.New(redisstore.New(rdb, redisstore.Options{Prefix: "b"}),
		cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Hour}})
	require.NoError(b, err)
	b.Cleanup(func() { _ = responses.Close() })
	for _, arm := range []struct {
		name string
		h    http.Handler
	}{
		{"bare", http.HandlerFunc(hello)},
		{"bare and raw GET", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { rawGet(b, rdb, r); hello(w, r) })},
		{"middleware", middleware.New(responses, middleware.Options{})(http.HandlerFunc(hello))},
	} {
		b.Run(arm.name, func(b *testing.B) {
			b.Run("server", func(b *testing.B) { overLoopback(b, arm.h) })
			b.Run("handler", func(b *testing.B) { alone(b, arm.h) })
		})
	}
}

func rawGet(b *testing.B, rdb *redis.Client, r *http.Request) {
	if _, err := rdb.Get(r.Context(), "raw").Bytes(); err != nil {
		b.Error(err)
	}
}

// overLoopback is what a client sees.
func overLoopback(b *testing.B, h http.Handler) {
	s := httptest.NewServer(h)
	defer s.Close()
	client := s.Client()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := client.Get(s.URL + "/a?b=c")
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// alone is without net/http's part.
func alone(b *testing.B, h http.Handler) {
	r := httptest.NewRequest("GET", "/a?b=c", nil)
	r.Header.Set("User-Agent", "bench")
	r.Header.Set("Accept-Encoding", "gzip")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{http.Header{}}, r)
	}
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
