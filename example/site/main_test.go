package site_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/backend"
	"github.com/bellwether-cache/bellwether/example/docs"
	"github.com/bellwether-cache/bellwether/example/site"
)

// library renders in no time.
type library struct{}

func (library) Index(context.Context) ([]byte, error) { return []byte("all packages"), nil }

func (library) Package(_ context.Context, path string) ([]byte, error) {
	switch path {
	case "unknown":
		return nil, docs.ErrUnknown
	case "broken":
		return nil, errors.New("can't be read")
	}
	return []byte("package " + path), nil
}

// start starts two replicas on an embedded server.
func start(t *testing.T) *site.Fleet {
	t.Helper()
	redis, err := backend.Open(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	fleet, err := site.Start(redis.Client, site.NewOrigin(library{}), site.Options{
		Replicas: 2, Addr: "127.0.0.1:0", Prefix: "test:", Lease: time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, fleet.Close()) })
	t.Cleanup(http.DefaultClient.CloseIdleConnections) // a connection that nothing came through holds a server up
	return fleet
}

type answer struct {
	status int
	header http.Header
	body   string
}

func send(t *testing.T, method, url string, header http.Header) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	r.Header = header
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return answer{got.StatusCode, got.Header, string(body)}
}

func get(t *testing.T, url string) answer {
	t.Helper()
	return send(t, http.MethodGet, url, http.Header{})
}

func held(t *testing.T, url string) answer {
	t.Helper()
	return send(t, http.MethodGet, url, http.Header{"Cache-Control": {"only-if-cached"}})
}
