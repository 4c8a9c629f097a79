package redisserver

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

// errTaken says that somebody else has the port.
var errTaken = errors.New("redisserver: the port is taken")

// process is one run of a server; a restarted server has another.
type process struct {
	pid   int
	log   string        // file with what it printed
	ended chan struct{} // closed once it has ended and was waited for
	child *os.Process
}

// start runs the command and hands it to a goroutine that waits for it.
//
// That goroutine also starts it, on an OS thread that it keeps until the process has ended: Linux sends the parent-death signal when
// the *thread* that forked ends, and Go ends a thread whose goroutine exits locked to it.
func start(path, dir string, args []string) (*process, error) {
	p := &process{log: filepath.Join(dir, "redis.log"), ended: make(chan struct{})}
	out, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	defer out.Close()

	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	cmd.SysProcAttr = dieWithParent()

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is of no interest: its log says why
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	p.child, p.pid = cmd.Process, cmd.Process.Pid
	return p, nil
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// await returns once the process answers on addr, and an error when it ends before or takes too long.
func (p *process) await(addr string) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if answers(addr, p.pid) {
			return nil
		}
		select {
		case <-p.ended:
			return p.obituary(addr)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return fmt.Errorf("redisserver: no answer on %s within %v; its last words:\n%s", addr, patience, p.lastWords())
}

func (p *process) obituary(addr string) error {
	words := p.lastWords()
	if strings.Contains(words, "Address already in use") {
		return fmt.Errorf("%w: %s", errTaken, addr)
	}
	return fmt.Errorf("redisserver: redis-server ended before it answered on %s; its last words:\n%s", addr, words)
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

func (p *process) signal(sig syscall.Signal) error {
	if err := p.child.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("redisserver: %w", err)
	}
	return nil
}

// end sends the signal, SIGKILL when that is not enough, and returns when the process is gone.
func (p *process) end(sig syscall.Signal) error {
	if err := p.signal(sig); err != nil {
		return err
	}
	if err := p.signal(syscall.SIGCONT); err != nil { // a paused process hears nothing but SIGKILL
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(grace):
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.ended
	return nil
}
