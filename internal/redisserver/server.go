// Package redisserver starts real redis-server processes on free ports.
//
// Tests and the load program want the real thing, and a few of it at once. A server started here answers on the loopback interface
// only, keeps nothing on disk unless told to, and ends with the program that started it, however that one ends.
package redisserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// ErrMissing says that there is no redis-server on the PATH, and how to get one.
var ErrMissing = errors.New("redisserver: redis-server is not installed; install it with `apt-get install redis-server`, " +
	"`dnf install redis`, `apk add redis` or `brew install redis`")

const (
	tries    = 5                // ports to try: another process may take one between our look and the server's bind
	patience = 10 * time.Second // for a server to answer its first PING
	grace    = 2 * time.Second  // between SIGTERM and SIGKILL
)

// Server is one redis-server process. Its methods may be called from several goroutines.
type Server struct {
	Addr string // "127.0.0.1:port"; the same for the server's whole life, Restart included

	path   string
	dir    string
	config string // name of its config file, "": none
	args   []string

	mu      sync.Mutex // guards what follows, and lets one change of state happen at a time
	proc    *process
	paused  bool
	stopped bool
}

// Start runs a redis-server on a free loopback port in a directory of its own and returns once it answers PING. It has persistence
// switched off. The args are appended to its command line and so win over the defaults: Start("--maxmemory", "2mb").
//
// It returns ErrMissing where redis-server isn't installed; a server that ends early is an error that carries its last log lines.
func Start(args ...string) (*Server, error) { return boot("", args) }

// boot is Start for a server that may want a config file of its own in its directory.
func boot(config string, args []string) (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrMissing
	}
	dir, err := os.MkdirTemp("", "redisserver-")
	if err != nil {
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	s := &Server{path: path, dir: dir, config: config, args: args}
	for range tries {
		s.Addr = FreeAddr()
		if s.proc, err = s.launch(); !errors.Is(err, errTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// Pid is the process id of the running server, 0 when none is running.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.alive() {
		return 0
	}
	return s.proc.pid
}

// Pause freezes the server (SIGSTOP): connections stay open and nothing is answered.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP, true) }

// Resume lets a paused server go on (SIGCONT). It first answers what was sent to it meanwhile.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT, false) }

func (s *Server) signal(sig syscall.Signal, paused bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.proc.alive() {
		return fmt.Errorf("redisserver: %s is not running", s.Addr)
	}
	s.paused = paused
	return s.proc.signal(sig)
}

// up reports whether the server runs and can answer.
func (s *Server) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.alive() && !s.paused
}

// Kill ends the server at once (SIGKILL), as a crash would. Its directory stays, for Restart. Killing it twice is harmless.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.end(syscall.SIGKILL)
}

// Restart starts a server that has ended again, on the same port and with the same args. It comes back empty, unless the args told
// it to persist.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return fmt.Errorf("redisserver: %s is stopped for good", s.Addr)
	case s.proc.alive():
		return fmt.Errorf("redisserver: %s is still running", s.Addr)
	}
	p, err := s.launch()
	if err != nil {
		return err
	}
	s.proc, s.paused = p, false
	return nil
}

// Stop ends the server, paused or not (SIGTERM, and SIGKILL when that takes too long), and removes its directory. Stopping it twice
// is harmless.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return errors.Join(s.proc.end(syscall.SIGTERM), os.RemoveAll(s.dir))
}

// launch starts a process on s.Addr and waits until it answers.
func (s *Server) launch() (*process, error) {
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return nil, fmt.Errorf("redisserver: %w", err)
	}
	args := []string{"--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--daemonize", "no", "--save", "", "--appendonly", "no"}
	if s.config != "" {
		file, err := os.OpenFile(filepath.Join(s.dir, s.config), os.O_CREATE, 0o600) // a server that was there before has written to it
		if err != nil {
			return nil, fmt.Errorf("redisserver: %w", err)
		}
		args = append([]string{file.Name()}, args...)
		_ = file.Close() // nothing was written
	}
	p, err := start(s.path, s.dir, append(args, s.args...))
	if err != nil {
		return nil, err
	}
	if err := p.await(s.Addr); err != nil {
		return nil, errors.Join(err, p.end(syscall.SIGKILL))
	}
	return p, nil
}

// FreeAddr picks a port nobody listens on, below those that systems hand to outgoing connections: there, a client that redials a
// killed server could be given the server's own port and keep it from coming back. A cluster's bus, 10000 higher, stays below too.
func FreeAddr() string {
	for {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.N(12_000)))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
}
