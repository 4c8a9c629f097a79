package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/backend"
	"github.com/bellwether-cache/bellwether/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	patience = 15 * time.Second
	tick     = 20 * time.Millisecond
)

// replica is a service on a loopback port.
type replica struct {
	*service
	t   *testing.T
	url string
}

// serve starts a service that ends with the test. All say that they are one host, as behind a load balancer.
func serve(t *testing.T, addr string, takes time.Duration) replica {
	t.Helper()
	s, err := open(redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, ContextTimeoutEnabled: true}), takes)
	require.NoError(t, err)
	server := httptest.NewServer(s.handler())
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
		require.NoError(t, s.Close())
	})
	r := replica{s, t, server.URL}
	r.becomes("bellwether_push_connected", 1)
	return r
}

func (r replica) send(method, path string) (status int, body string) {
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, nil)
	require.NoError(r.t, err)
	request.Host = "example"
	response, err := http.DefaultClient.Do(request)
	if !assert.NoError(r.t, err) { // also on other goroutines
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	assert.NoError(r.t, err)
	return response.StatusCode, string(text)
}

// scrape returns all samples, by name and labels as they are printed.
func (r replica) scrape() map[string]float64 {
	_, text := r.send(http.MethodGet, "/metrics")
	samples := map[string]float64{}
	for line := range strings.Lines(text) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		require.NoError(r.t, err)
		samples[line[:at]] = value
	}
	return samples
}

func (r replica) becomes(sample string, want float64) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		is, ok := r.scrape()[sample]
		return ok && is == want
	}, patience, tick, "%s is not %v", sample, want)
}

// matching adds up the samples whose name and labels match.
func matching(samples map[string]float64, pattern string) (sum float64) {
	re := regexp.MustCompile("^(?:" + pattern + ")$")
	for sample, value := range samples {
		if re.MatchString(sample) {
			sum += value
		}
	}
	return sum
}

func count(kind, label, value string) string {
	return fmt.Sprintf(`bellwether_%s_duration_seconds_count{%s="%s"}`, kind, label, value)
}

func TestAStampedeIsOneComputationInTheMetrics(t *testing.T) {
	s := redistest.Start(t)
	replicas := []replica{serve(t, s.Addr, 300*time.Millisecond), serve(t, s.Addr, 300*time.Millisecond)}
	const callers = 60
	var crowd sync.WaitGroup
	for i := range callers {
		crowd.Go(func() {
			status, _ := replicas[i%2].send(http.MethodGet, "/pages/one")
			assert.Equal(t, http.StatusOK, status)
		})
	}
	crowd.Wait()
	both := map[string]float64{}
	for _, r := range replicas {
		for sample, value := range r.scrape() {
			both[sample] += value
		}
	}
	assert.Equal(t, 1., matching(both, `bellwether_computation_duration_seconds_count.*`))
	assert.Equal(t, 1., both[count("computation", "result", "ok")])
	assert.Equal(t, 1., both[count("call", "outcome", "computed")])
	assert.Equal(t, float64(callers), matching(both, `bellwether_call_duration_seconds_count.*`), "each call once")
	assert.Equal(t, float64(callers-1), both[count("call", "outcome", "collapsed")]+both[count("call", "outcome", "hit")])
	assert.Equal(t, 1., both[`bellwether_http_responses_total{how="stored"}`])
	assert.Equal(t, float64(callers), matching(both, `bellwether_http_responses_total.*`))
	assert.Equal(t, 1., both[`bellwether_lease_events_total{event="acquired",of="cache"}`])
	assert.Zero(t, matching(both, `bellwether_(store_failures|breaker_changes|damaged_entries|unpurged)_total.*`))

	replicas[0].becomes("bellwether_oldest_computation_seconds", 0)
	require.Eventually(t, func() bool { // the job
		return replicas[0].scrape()[count("work", "result", "ok")]+replicas[1].scrape()[count("work", "result", "ok")] > 0
	}, patience, tick)
}

func TestNoKeyMakesASeries(t *testing.T) {
	r := serve(t, redistest.Start(t).Addr, 0)
	series := func() int { return len(r.scrape()) }
	before := series()
	for i := range 100 {
		r.send(http.MethodGet, fmt.Sprint("/pages/secret-", i))
		r.send(http.MethodDelete, fmt.Sprint("/pages/secret-", i))
	}
	assert.Equal(t, before, series())
	_, text := r.send(http.MethodGet, "/metrics")
	assert.NotContains(t, text, "secret")
}

// What docs/oncall.md says of an outage.
func TestAnOutageAndItsEndShowInTheMetrics(t *testing.T) {
	s := redistest.Start(t)
	r := serve(t, s.Addr, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		r.send(http.MethodGet, "/pages/one")
		return r.scrape()[count("call", "outcome", "hit")] > 0
	}, patience, tick)
	require.NoError(t, s.Kill())
	failing := []string{
		`bellwether_breaker_changes_total{breaker="link",state="open"}`,
		`bellwether_store_failures_total{step="begin",why="unreachable"}`,
		`bellwether_lease_events_total{event="failed",of="cache"}`,
		count("call", "outcome", "stale"),
	}
	require.Eventually(t, func() bool {
		status, _ := r.send(http.MethodGet, "/pages/one")
		require.Equal(t, http.StatusOK, status, "no caller's trouble")
		is := r.scrape()
		for _, sample := range failing {
			if is[sample] == 0 {
				return false
			}
		}
		return is["bellwether_push_connected"] == 0
	}, patience, tick)
	status, _ := r.send(http.MethodDelete, "/pages/one")
	assert.Equal(t, http.StatusNoContent, status)
	is := r.scrape()
	assert.Equal(t, 1., is["bellwether_unpurged_total"])
	assert.Equal(t, 2., is["bellwether_undeleted_keys"], "of those who say who they are, and of the others")
	assert.Zero(t, matching(is, `bellwether_call_duration_seconds_count\{outcome="(error|timeout|panic)"\}`))

	require.NoError(t, s.Restart())
	r.becomes("bellwether_undeleted_keys", 0)
	r.becomes("bellwether_push_connected", 1)
	require.Eventually(t, func() bool {
		r.send(http.MethodGet, "/pages/one")
		return r.scrape()[`bellwether_breaker_changes_total{breaker="link",state="closed"}`] > 0
	}, patience, tick)
}

func TestWhatCacheStatusSaysIsOneOfAFewWays(t *testing.T) {
	for status, want := range map[string]string{
		"Bellwether;hit;ttl=42":                       "hit",
		"Bellwether;hit;ttl=-3":                       "stale",
		"Bellwether;fwd=miss;collapsed":               "collapsed",
		"Bellwether;fwd=uri-miss;stored":              "stored",
		"Bellwether;fwd=stale;fwd-status=304;stored":  "stored",
		"Bellwether;fwd=uri-miss;detail=private":      "not-stored",
		"Bellwether;fwd=bypass;detail=not-shared":     "bypass",
		"Bellwether;fwd=method":                       "method",
		"Bellwether;detail=only-if-cached":            "not-stored",
		`Bellwether;fwd=miss;collapsed;detail=";hit"`: "collapsed",
	} {
		assert.Equal(t, want, way([]string{"near;hit", status}), status)
	}
	assert.Equal(t, "none", way(nil))
}

func TestItServesOnLoopbackOnly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, addr := range []string{":8090", "0.0.0.0:0", "example.org:80", "no port"} {
		assert.ErrorContains(t, run(ctx, []string{"-addr", addr}, io.Discard, io.Discard), "localhost, 127.x.y.z")
	}
}

// On the embedded server, for who has no other.
func TestItRunsOnTheEmbeddedServer(t *testing.T) {
	b, err := backend.Open(t.Context(), "")
	require.NoError(t, err)
	defer b.Close()
	s, err := open(b.Client(), 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/pages/one", nil))
	assert.Contains(t, w.Body.String(), "one, made at")
}

// standin is a cache with so much to tell.
type standin struct {
	oldest    time.Duration
	undeleted int
}

func (c standin) Oldest() time.Duration { return c.oldest }
func (c standin) Undeleted() int        { return c.undeleted }

func TestSeveralCachesAreWatchedTogether(t *testing.T) {
	m := newMetrics()
	m.watch(standin{time.Second, 2}, standin{3 * time.Second, 1}, standin{})
	families, err := m.registry.Gather()
	require.NoError(t, err)
	shown := map[string]float64{}
	for _, f := range families {
		if g := f.GetMetric()[0].GetGauge(); g != nil {
			shown[f.GetName()] = g.GetValue()
		}
	}
	assert.Equal(t, map[string]float64{"bellwether_push_connected": 0, "bellwether_oldest_computation_seconds": 3, "bellwether_undeleted_keys": 3}, shown)
}
