package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBadFlagsAreRefusedWithAReason(t *testing.T) {
	for flags, want := range map[string]string{
		"":                                     "either -suite or -origin",
		"-suite x -origin http://y":            "either -suite or -origin",
		"-origin y":                            "must begin with http:// or https://",
		"-origin http://y -replicas 0":         "-replicas is 0",
		"-origin http://y -results f":          "needs a -suite",
		"-origin http://y and more":            "after the flags",
		"-origin http://y -required many":      "invalid value",
		"-origin http://y -listen 127.0.0.1:x": "unknown port",
	} {
		var stderr strings.Builder
		code := run(t.Context(), strings.Fields(flags), io.Discard, &stderr)
		assert.NotZero(t, code, flags)
		assert.Contains(t, stderr.String(), want, flags)
	}
}

func TestAFolderWithoutTheSuiteIsAnError(t *testing.T) {
	var stderr strings.Builder
	assert.Equal(t, 1, run(t.Context(), []string{"-suite", t.TempDir() + "/none"}, io.Discard, &stderr))
	assert.NotEmpty(t, stderr.String())
}

func TestTheProxyServesUntilItIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout strings.Builder
	assert.Zero(t, run(ctx, []string{"-origin", "http://localhost:1"}, &stdout, io.Discard))
	assert.Contains(t, stdout.String(), "proxy at http://127.0.0.1:")
}

func TestAllReplicasOfTheProxyAnswerFromOneStore(t *testing.T) {
	for name, c := range map[string]struct {
		none bool
		asks int64
	}{"cached": {false, 1}, "without a cache": {true, 4}} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.Header().Set("CDN-Cache-Control", "max-age=60")
				_, _ = io.WriteString(w, "hello")
			}))
			defer origin.Close()
			to, err := url.Parse(origin.URL)
			require.NoError(t, err)
			proxy, err := openProxy(params{listen: "127.0.0.1:0", replicas: 3, none: c.none}, to)
			require.NoError(t, err)
			for range 4 {
				assert.Equal(t, "hello", get(t, proxy.url))
			}
			assert.Equal(t, c.asks, asked.Load())
			http.DefaultClient.CloseIdleConnections()
			assert.NoError(t, proxy.Close())
		})
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}
