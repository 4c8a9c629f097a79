package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// grace is how long a process may take to end before it is killed.
const grace = 10 * time.Second

// process is a program of PostgreSQL that runs.
type process struct {
	log   string        // file with what it printed
	ended chan struct{} // closed once it has ended and was waited for
	err   error         // how it ended; read it after ended is closed
	child *os.Process
}

// start runs a program in the server's directory. The goroutine that waits for it also starts it, on an OS thread that
// it keeps: Linux sends the parent-death signal when the thread that forked ends.
func (s *Server) start(program string, args ...string) (*process, error) {
	p := &process{log: filepath.Join(s.dir, program+".log"), ended: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("pgserver: %w", err)
	}
	defer out.Close()
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = dieWithParent()
	cmd.SysProcAttr.Credential = s.user

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("pgserver: %w", err)
	}
	p.child = cmd.Process
	return p, nil
}

// lastWords are the last lines of the log.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// end sends the signal, SIGKILL when that is not enough, and returns when the process is gone.
func (p *process) end(sig syscall.Signal) error {
	if err := p.child.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("pgserver: %w", err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(grace):
	}
	if err := p.child.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("pgserver: %w", err)
	}
	<-p.ended
	return nil
}
