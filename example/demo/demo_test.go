package demo_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/backend"
	"github.com/bellwether-cache/bellwether/example/demo"
	"github.com/bellwether-cache/bellwether/example/docs"
	"github.com/bellwether-cache/bellwether/example/holder"
	"github.com/bellwether-cache/bellwether/example/site"
)

func TestMain(m *testing.M) {
	holder.Main()
	os.Exit(m.Run())
}

// library takes a while, as a real one does.
type library struct{}

func (library) Index(context.Context) ([]byte, error) { return nil, nil }

func (library) Package(_ context.Context, path string) ([]byte, error) {
	if strings.HasPrefix(path, "no/") {
		return nil, docs.ErrUnknown
	}
	time.Sleep(20 * time.Millisecond)
	return []byte(path), nil
}

// stage has two replicas on one server each, if split, or both on the same.
func stage(t *testing.T, split bool) (*demo.Stage, *bytes.Buffer) {
	t.Helper()
	origin := site.NewOrigin(library{})
	redis := open(t)
	fleet := start(t, redis, origin)
	if split {
		redis = open(t)
	}
	fleet.Replicas = append(fleet.Replicas, start(t, redis, origin).Replicas...)
	goroot, err := docs.GOROOT(t.Context())
	require.NoError(t, err)
	var out bytes.Buffer
	return &demo.Stage{
		Fleet: fleet, Library: library{}, Clients: 5, Steady: 1200 * time.Millisecond, Out: &out, Progress: demo.NewProgress(&out),
		Holder: func(ctx context.Context, path string) (*holder.Holder, error) {
			return holder.Start(ctx, holder.Task{
				Redis: redis.Addr, Prefix: fleet.Options.Prefix, GOROOT: goroot, Path: path, Lease: fleet.Options.Lease,
			})
		},
	}, &out
}

func open(t *testing.T) *backend.Backend {
	t.Helper()
	redis, err := backend.Open(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	return redis
}

func start(t *testing.T, redis *backend.Backend, origin *site.Origin) *site.Fleet {
	t.Helper()
	fleet, err := site.Start(redis.Client, origin, site.Options{
		Replicas: 1, Addr: "127.0.0.1:0", Prefix: "test:", Lease: 500 * time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, fleet.Close()) })
	return fleet
}

func TestAllIsAsPromised(t *testing.T) {
	stage, out := stage(t, false)
	require.NoError(t, stage.Run(t.Context()), out)
	assert.NotContains(t, out.String(), "NOT AS PROMISED")
}

// Replicas that don't share a server can't keep the promises, and the demonstration must notice.
func TestBrokenPromisesAreNoticed(t *testing.T) {
	stage, out := stage(t, true)
	err := stage.Run(t.Context())
	assert.ErrorIs(t, err, demo.ErrBroken)
	for _, broken := range []string{
		"2 renderings instead of 1",
		"2 different pages instead of 1",
		"1 renderings while the holder lived",
		"2 look-ups instead of 1",
	} {
		assert.Contains(t, out.String(), "NOT AS PROMISED: "+broken)
	}
}

func TestInterruptedInTheMiddle(t *testing.T) {
	stage, _ := stage(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, stage.Run(ctx), context.DeadlineExceeded)
}
