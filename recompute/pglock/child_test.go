package pglock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/pglock"
	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgtest"
)

// inChild tells a process of this test binary what to hold: "url prefix ttl".
const inChild = "PGLOCK_TEST_CHILD"

// child holds a lease, says so, and says once more when its work ends.
func child() {
	task := strings.Fields(os.Getenv(inChild))
	ttl, err := time.ParseDuration(task[2])
	must(err)
	pool, err := pgxpool.New(context.Background(), task[0])
	must(err)
	l, err := pglock.New(pool, pglock.Options{Prefix: task[1], Budget: soon})
	must(err)
	guard, err := recompute.NewGuard(l, recompute.GuardOptions{TTL: ttl})
	must(err)
	err = guard.Do(context.Background(), "key", func(ctx context.Context, h *recompute.Held) error {
		fmt.Println("held")
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1) // the test has gone
		}()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println("lost:", errors.Is(err, recompute.ErrLost))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// process is a holder in a process of its own.
type process struct {
	*os.Process
	said *bufio.Scanner
}

func startChild(t *testing.T, ttl time.Duration) process {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %v", inChild, pgtest.Shared(t).URL(), t.Name(), ttl))
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed, and says so
	})
	p := process{c.Process, bufio.NewScanner(stdout)}
	require.Equal(t, "held", p.next(t))
	return p
}

func (p process) next(t *testing.T) string {
	t.Helper()
	require.True(t, p.said.Scan(), "the child said no more")
	return strings.TrimSpace(p.said.Text())
}

func TestAKilledHoldersLeaseEndsAtOnce(t *testing.T) {
	t.Parallel()
	l, _ := open(t)
	p := startChild(t, long)
	_, err := l.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, recompute.ErrHeld)
	require.NoError(t, p.Kill())
	began := time.Now()
	release(t, freed(t, l, "key")) // its ttl is a minute
	t.Logf("free %v after kill -9", time.Since(began))
}

func TestAPausedHoldersLeaseEndsAfterItsTTL(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	l, _ := open(t)
	p := startChild(t, ttl)
	require.NoError(t, p.Signal(syscall.SIGSTOP))
	began := time.Now()
	lease := freed(t, l, "key")
	assert.Less(t, time.Since(began), ttl+soon/2)
	assert.Greater(t, time.Since(began), ttl/2, "it had extended it less than a third of its ttl ago")
	require.NoError(t, p.Signal(syscall.SIGCONT))
	require.Equal(t, "lost: true", p.next(t))
	require.NoError(t, lease.Extend(t.Context(), long), "which is no concern of its successor")
	release(t, lease)
}
