package redisserver_test

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
)

// orSkip skips a test where there is no redis-server.
func orSkip(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, redisserver.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
}

func TestAClusterSurvivesTheDeathOfAPrimary(t *testing.T) {
	t.Parallel()
	c, err := redisserver.StartCluster(3)
	orSkip(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Stop()) })
	require.Len(t, c.Addrs(), 6)
	require.True(t, c.Whole())

	// The slot of "b" is 3300, the first primary's.
	assert.Equal(t, "+OK", answer(t, c.Nodes[0], "SET b v"))
	assert.Equal(t, "-MOVED 3300 "+c.Nodes[0].Addr, answer(t, c.Nodes[1], "SET b v"))
	require.NoError(t, c.Nodes[0].Kill())
	require.Eventually(t, func() bool {
		line, err := ask(c.Nodes[3].Addr, "SET b w", time.Second)
		return err == nil && line == "+OK"
	}, 20*time.Second, 20*time.Millisecond)
	require.Eventually(t, c.Whole, 20*time.Second, 20*time.Millisecond)
	require.NoError(t, c.Nodes[0].Restart())
	require.Eventually(t, func() bool {
		return answer(t, c.Nodes[0], "SET b x") == "-MOVED 3300 "+c.Nodes[3].Addr
	}, 20*time.Second, 20*time.Millisecond)
}

func TestSentinelsPutAReplicaInThePlaceOfASilentPrimary(t *testing.T) {
	t.Parallel()
	w, err := redisserver.StartWatched()
	orSkip(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Stop()) })
	require.Len(t, w.Addrs(), 3)
	require.Equal(t, w.Nodes[0].Addr, w.Primary())

	require.NoError(t, w.Nodes[0].Pause())
	require.Eventually(t, func() bool { return w.Primary() != "" && w.Primary() != w.Nodes[0].Addr }, 30*time.Second, 20*time.Millisecond)
	next := slices.IndexFunc(w.Nodes, func(s *redisserver.Server) bool { return s.Addr == w.Primary() })
	require.Equal(t, "+OK", answer(t, w.Nodes[next], "SET k v"))
	require.NoError(t, w.Nodes[0].Resume())
}

func TestClustersAndSentinelsThatCannotStartLeaveNothing(t *testing.T) {
	start(t) // skips where there is no redis-server
	t.Setenv("TMPDIR", t.TempDir())
	_, err := redisserver.StartCluster(1, "--no-such-option", "1")
	require.ErrorContains(t, err, "no-such-option")
	_, err = redisserver.StartWatched("--no-such-option", "1")
	require.ErrorContains(t, err, "no-such-option")
	files, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	assert.Empty(t, files)
}
