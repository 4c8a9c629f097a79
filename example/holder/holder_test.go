package holder_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/backend"
	"github.com/bellwether-cache/bellwether/example/docs"
	"github.com/bellwether-cache/bellwether/example/holder"
)

func TestMain(m *testing.M) {
	holder.Main()
	os.Exit(m.Run())
}

func task(t *testing.T) (holder.Task, *backend.Backend) {
	t.Helper()
	redis, err := backend.Open(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	goroot, err := docs.GOROOT(t.Context())
	require.NoError(t, err)
	return holder.Task{Redis: redis.Addr, Prefix: "test", GOROOT: goroot, Path: "os", Lease: time.Second}, redis
}

func TestKilledHolderLeavesItsLeaseToRunOut(t *testing.T) {
	task, redis := task(t)
	h, err := holder.Start(t.Context(), task)
	require.NoError(t, err)
	rdb := redis.Client()
	defer rdb.Close()
	assert.NotEmpty(t, rdb.Keys(t.Context(), "test*").Val(), "it holds something")
	require.NoError(t, h.Kill())
	assert.NotEmpty(t, rdb.Keys(t.Context(), "test*").Val(), "a killed process cleans nothing up")
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	task, _ := task(t)
	task.GOROOT = t.TempDir()
	_, err := holder.Start(t.Context(), task)
	assert.ErrorContains(t, err, "instead of rendering")
}
