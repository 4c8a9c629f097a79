package load_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/load"
	"github.com/bellwether-cache/bellwether/example/site"
)

func serve(t *testing.T, h http.HandlerFunc) (*load.Client, string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client := load.New(10)
	t.Cleanup(client.Close)
	return client, server.URL
}

func TestBurstComesAtOnce(t *testing.T) {
	const each = 20
	var waiting, seen atomic.Int32
	all := make(chan struct{})
	client, url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if waiting.Add(1) == 2*each {
			close(all)
		}
		<-all // nobody is answered before the last one has come
		w.Header().Set("Cache-Status", "Bellwether;hit;ttl=7")
		w.Header().Set(site.HeaderRendering, "7")
	})
	report := client.Burst(t.Context(), []string{url, url + "/b"}, each, func() { seen.Add(1) })
	require.NoError(t, report.Err)
	assert.Equal(t, 2*each, report.Answers())
	assert.EqualValues(t, 2*each, seen.Load())
	assert.Equal(t, map[int]int{200: 2 * each}, report.Statuses)
	assert.Equal(t, map[string]int{"hit": 2 * each}, report.Outcomes)
	assert.Equal(t, map[string]int{"7": 2 * each}, report.Renderings)
	assert.LessOrEqual(t, report.Quantile(0.5), report.Quantile(1))
}

func TestSteadyEnds(t *testing.T) {
	client, url := serve(t, func(http.ResponseWriter, *http.Request) {})
	began := time.Now()
	report := client.Steady(t.Context(), []string{url}, 2, time.Millisecond, 50*time.Millisecond, func() {})
	require.NoError(t, report.Err)
	assert.GreaterOrEqual(t, report.Answers(), 2)
	assert.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
}

func TestFailuresAreNoAnswers(t *testing.T) {
	client, url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			panic(http.ErrAbortHandler)
		}
	})
	report := client.Burst(t.Context(), []string{url, url + "/gone"}, 1, func() {})
	assert.Error(t, report.Err)
	assert.Equal(t, 1, report.Answers())
	assert.Error(t, client.Get(t.Context(), "::").Err)
}

func TestHeldAndDelete(t *testing.T) {
	client, url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Cache-Control") == "only-if-cached":
			w.WriteHeader(http.StatusGatewayTimeout)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	assert.Equal(t, http.StatusGatewayTimeout, client.Held(t.Context(), url).Status)
	assert.Equal(t, http.StatusNoContent, client.Delete(t.Context(), url).Status)
}

func TestOutcomesAreReadFromCacheStatus(t *testing.T) {
	client, url := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Cache-Status", r.URL.RawQuery) })
	for status, want := range map[string]string{
		"":                                  "",
		"plain;hit":                         "hit",
		"Bellwether;hit;ttl=0":              "hit",
		"Bellwether;hit;ttl=-1":             "stale",
		"Bellwether;fwd=miss;collapsed":     "collapsed",
		"Bellwether;fwd=uri-miss;stored":    "computed",
		"Bellwether;fwd=bypass;detail=body": "computed",
	} {
		assert.Equal(t, want, client.Get(t.Context(), url+"?"+status).Outcome, status)
	}
}

func TestQuantileOfNothing(t *testing.T) {
	assert.Zero(t, load.Report{}.Quantile(0.99))
}
