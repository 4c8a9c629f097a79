package middleware_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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

// arm is one way to answer with 1 KiB.
type arm struct {
	name string
	h    http.Handler
}

// armsOnRedis are a handler that writes 1 KiB from memory, the same after a raw GET of 1 KiB from Redis, and a hit of the
// middleware on Redis.
func armsOnRedis(b *testing.B) (bare, raw, hit arm) {
	server := redistest.Start(b)
	rdb := redistest.Client(b, server)
	require.NoError(b, rdb.Set(b.Context(), "raw", kilobyte, time.Hour).Err())
	responses, err := cache.New(redisstore.New(rdb, redisstore.Options{Prefix: "b"}),
		cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Hour}})
	require.NoError(b, err)
	b.Cleanup(func() { _ = responses.Close() })
	return arm{"bare", http.HandlerFunc(hello)},
		arm{"bare and raw GET", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { rawGet(b, rdb, r); hello(w, r) })},
		arm{"middleware", middleware.New(responses, middleware.Options{})(http.HandlerFunc(hello))}
}

// BenchmarkHit compares the arms one after the other.
func BenchmarkHit(b *testing.B) {
	bare, raw, hit := armsOnRedis(b)
	for _, arm := range []arm{bare, raw, hit} {
		b.Run(arm.name, func(b *testing.B) {
			b.Run("server", func(b *testing.B) { overLoopback(b, arm.h) })
			b.Run("handler", func(b *testing.B) { alone(b, arm.h) })
		})
	}
}

// BenchmarkHitBesideARawGet has the arms take turns, so that what else goes on on the machine meets both. times is how many times
// as long a hit takes, by the medians, and mean-times by all calls together, the collection of garbage included.
func BenchmarkHitBesideARawGet(b *testing.B) {
	_, raw, hit := armsOnRedis(b)
	b.Run("server", func(b *testing.B) { takeTurns(b, client(b, raw.h), client(b, hit.h)) })
	b.Run("handler", func(b *testing.B) { takeTurns(b, caller(raw.h), caller(hit.h)) })
}

func takeTurns(b *testing.B, raw, hit func()) {
	var took [2][]time.Duration
	for b.Loop() {
		for i, do := range []func(){raw, hit} {
			began := time.Now()
			do()
			took[i] = append(took[i], time.Since(began))
		}
	}
	var median, sum [2]float64
	for i, all := range took {
		slices.Sort(all)
		median[i] = float64(all[len(all)/2])
		for _, d := range all {
			sum[i] += float64(d)
		}
	}
	b.ReportMetric(0, "ns/op") // of both together
	b.ReportMetric(median[0]/1e3, "raw-µs")
	b.ReportMetric(median[1]/1e3, "hit-µs")
	b.ReportMetric(median[1]/median[0], "times")
	b.ReportMetric(sum[1]/sum[0], "mean-times")
}

func rawGet(b *testing.B, rdb *redis.Client, r *http.Request) {
	if _, err := rdb.Get(r.Context(), "raw").Bytes(); err != nil {
		b.Error(err)
	}
}

// overLoopback is what a client sees.
func overLoopback(b *testing.B, h http.Handler) {
	ask := client(b, h)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}

// client returns a function that sends a request to a server of the handler's own, over a connection that it keeps.
func client(b *testing.B, h http.Handler) func() {
	s := httptest.NewServer(h)
	b.Cleanup(s.Close)
	return func() {
		resp, err := s.Client().Get(s.URL + "/a?b=c")
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

// alone is without net/http's part.
func alone(b *testing.B, h http.Handler) {
	call := caller(h)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

func caller(h http.Handler) func() {
	r := httptest.NewRequest("GET", "/a?b=c", nil)
	r.Header.Set("User-Agent", "bench")
	r.Header.Set("Accept-Encoding", "gzip")
	return func() { h.ServeHTTP(discard{http.Header{}}, r) }
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}
