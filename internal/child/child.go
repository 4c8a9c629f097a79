// Package child runs a test binary a second time, as a process that a test can pause and kill.
//
// The binary's TestMain finds the environment variable that the test has set, and does what it reads line by line instead
// of running tests.
package child

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is how long a process may take to say what is expected of it.
const patience = 20 * time.Second

// Process is a run of the test binary.
type Process struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.Writer
	lines chan string
}

// Start runs the binary with one more variable, given as "name=value", and waits until it says that it is ready. It ends
// with the test, whatever state it is in.
func Start(t testing.TB, env string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.Command(os.Args[0]), lines: make(chan string, 10_000)}
	p.cmd.Env = append(os.Environ(), env)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	p.in = in
	go func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		p.Signal(syscall.SIGKILL)
		for range p.lines { // until it has ended
		}
		_ = p.cmd.Wait()
	})
	p.Expect("ready")
	return p
}

// Tell says a line to the process.
func (p *Process) Tell(words ...any) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in, words...)
	require.NoError(p.t, err)
}

// Expect asserts that the next line begins so, and returns the rest of it.
func (p *Process) Expect(begins string) string {
	p.t.Helper()
	line := p.next(time.After(patience), begins)
	rest, ok := strings.CutPrefix(line, begins)
	require.True(p.t, ok, "said %q, should say %q", line, begins)
	return strings.TrimSpace(rest)
}

// Until reads up to a line that begins so, and returns the rest of it. None on the way may have the other word in it.
func (p *Process) Until(begins, never string) string {
	p.t.Helper()
	for late := time.After(patience); ; {
		line := p.next(late, begins)
		if rest, ok := strings.CutPrefix(line, begins); ok {
			return strings.TrimSpace(rest)
		}
		require.NotContains(p.t, line, never)
	}
}

func (p *Process) next(late <-chan time.Time, begins string) string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		require.True(p.t, ok, "the process ended before it said %q", begins)
		return line
	case <-late:
		require.FailNow(p.t, "the process did not say: "+begins)
		return ""
	}
}

// Lines are what the process says and nobody has read yet; they end with it.
func (p *Process) Lines() <-chan string { return p.lines }

// Signal sends a signal to the process, if it has not ended.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		assert.ErrorIs(p.t, err, os.ErrProcessDone)
	}
}
