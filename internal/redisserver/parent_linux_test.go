package redisserver_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
)

func TestNoServerSurvivesAKilledParent(t *testing.T) {
	t.Parallel()
	start(t) // skips where there is no redis-server
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), childEnv+"=1", "TMPDIR="+t.TempDir())
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())

	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscan(line, &pid)
	require.NoError(t, err)
	require.True(t, exists(pid))

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait() // it was killed, and says so
	assert.Eventually(t, func() bool { return !running(pid) }, 10*time.Second, 10*time.Millisecond)
}

// running tells a living process from one that is dead and not yet waited for: an orphan's new parent may take its time.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	var id int
	var name, state string
	_, err = fmt.Sscan(string(stat), &id, &name, &state)
	return err == nil && state != "Z"
}

func TestAServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	start(t) // skips where there is no redis-server
	type result struct {
		s   *redisserver.Server
		err error
	}
	asked := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		s, err := redisserver.Start()
		asked <- result{s, err}
	}()
	got := <-asked
	require.NoError(t, got.err)
	defer got.s.Stop()
	assert.Never(t, func() bool { return !running(got.s.Pid()) }, 200*time.Millisecond, 10*time.Millisecond)
}
