package redisserver_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
)

// start is redistest.Start without redistest, which stands on this package.
func start(t *testing.T, args ...string) *redisserver.Server {
	t.Helper()
	s, err := redisserver.Start(args...)
	if errors.Is(err, redisserver.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	return s
}

// ask sends one inline command and returns the first line of the answer, or the error.
func ask(addr, command string, wait time.Duration) (string, error) {
	c, err := net.DialTimeout("tcp", addr, wait)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(wait))
	if _, err := fmt.Fprintf(c, "%s\r\n", command); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line), err
}

func answer(t *testing.T, s *redisserver.Server, command string) string {
	t.Helper()
	line, err := ask(s.Addr, command, 10*time.Second)
	require.NoError(t, err)
	return line
}

func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAServerAnswersAsSoonAsStartReturns(t *testing.T) {
	t.Parallel()
	s := start(t)
	assert.Equal(t, "+PONG", answer(t, s, "PING"))
	assert.True(t, exists(s.Pid()))
}

func TestArgsWinOverTheDefaults(t *testing.T) {
	t.Parallel()
	s := start(t, "--databases", "3", "--appendonly", "yes")
	assert.Equal(t, "+OK", answer(t, s, "SELECT 2"))
	assert.Equal(t, "-ERR DB index is out of range", answer(t, s, "SELECT 3"))
}

func TestAServerWithAPasswordStartsToo(t *testing.T) {
	t.Parallel()
	s := start(t, "--requirepass", "secret")
	assert.Contains(t, answer(t, s, "PING"), "-NOAUTH")
}

func TestManyServersStartAtOnce(t *testing.T) {
	t.Parallel()
	const n = 8
	var wg sync.WaitGroup
	servers, errs := make([]*redisserver.Server, n), make([]error, n)
	for i := range n {
		wg.Go(func() { servers[i], errs[i] = redisserver.Start() })
	}
	wg.Wait()
	if errors.Is(errs[0], redisserver.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(errs[0])
	}
	addrs := map[string]bool{}
	for i, s := range servers {
		require.NoError(t, errs[i])
		addrs[s.Addr] = true
		defer s.Stop()
	}
	assert.Len(t, addrs, n)
}

func TestAServerThatEndsEarlyLeavesItsLastWords(t *testing.T) {
	t.Parallel()
	start(t) // skips where there is no redis-server
	s, err := redisserver.Start("--no-such-option", "1")
	assert.Nil(t, s)
	require.ErrorContains(t, err, "ended before it answered")
	assert.ErrorContains(t, err, "no-such-option")
}

func TestAKilledServerComesBackEmptyOnItsPort(t *testing.T) {
	t.Parallel()
	s := start(t)
	addr, pid := s.Addr, s.Pid()
	require.Equal(t, "+OK", answer(t, s, "SET k v"))
	require.ErrorContains(t, s.Restart(), "still running")

	require.NoError(t, s.Kill())
	require.NoError(t, s.Kill(), "twice is harmless")
	assert.Zero(t, s.Pid())
	assert.False(t, exists(pid))
	_, err := ask(addr, "PING", time.Second)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorContains(t, s.Pause(), "not running")

	require.NoError(t, s.Restart())
	assert.Equal(t, addr, s.Addr)
	assert.NotEqual(t, pid, s.Pid())
	assert.Equal(t, ":0", answer(t, s, "EXISTS k"))
}

func TestAServerToldToPersistComesBackWithItsKeys(t *testing.T) {
	t.Parallel()
	s := start(t, "--appendonly", "yes", "--appendfsync", "always")
	require.Equal(t, "+OK", answer(t, s, "SET k v"))
	require.NoError(t, s.Kill())
	require.NoError(t, s.Restart())
	assert.Equal(t, ":1", answer(t, s, "EXISTS k"))
}

func TestAPausedServerIsSilentUntilResumed(t *testing.T) {
	t.Parallel()
	s := start(t)
	require.NoError(t, s.Pause())
	_, err := ask(s.Addr, "PING", 100*time.Millisecond)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, s.Resume())
	assert.Equal(t, "+PONG", answer(t, s, "PING"))
}

func TestStopEndsEvenAPausedServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	pid := s.Pid()
	require.NoError(t, s.Pause())
	require.NoError(t, s.Stop())
	require.NoError(t, s.Stop(), "twice is harmless")
	assert.False(t, exists(pid))
	assert.ErrorContains(t, s.Restart(), "stopped for good")
}

func TestStopRemovesTheDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := start(t, "--appendonly", "yes")
	files, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, s.Stop())
	files, err = os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	assert.Empty(t, files)
}

func TestWhereRedisIsNotInstalledStartSaysHowToInstallIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := redisserver.Start()
	require.ErrorIs(t, err, redisserver.ErrMissing)
	assert.ErrorContains(t, err, "apt-get install redis-server")
}

// The process of TestNoServerSurvivesAKilledParent: it starts a server, says which, and waits to be killed.
const childEnv = "REDISSERVER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	s, err := redisserver.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.Pid())
	select {}
}
