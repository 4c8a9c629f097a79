// Package pgserver starts real PostgreSQL servers on free ports, for tests and examples.
//
// A server started here answers on the loopback interface only, keeps its data in a directory of its own, trusts
// everybody who can connect, and ends with the program that started it.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrMissing says that there is no PostgreSQL server here, and how to get one.
var ErrMissing = errors.New("pgserver: PostgreSQL is not installed; install it with `apt-get install postgresql`, " +
	"`dnf install postgresql-server`, `apk add postgresql` or `brew install postgresql@17`")

const (
	tries    = 5                // ports to try: another process may take one between our look and the server's bind
	patience = 60 * time.Second // for a server to answer: one that crashed recovers first
)

// Server is one PostgreSQL server. Its methods may not be called from several goroutines at once.
type Server struct {
	Addr string // "127.0.0.1:port"; the same for the server's whole life, Restart included

	bin, dir string
	args     []string
	user     *syscall.Credential
	proc     *process
}

// Start creates a database cluster, runs a server on it and returns once that answers. Each of args is a setting,
// "max_connections=200". It returns ErrMissing where PostgreSQL isn't installed.
func Start(args ...string) (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	user, err := other()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgserver-")
	if err != nil {
		return nil, fmt.Errorf("pgserver: %w", err)
	}
	s := &Server{bin: bin, dir: dir, args: args, user: user}
	if err := s.create(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// create fills the directory and runs the server for the first time.
func (s *Server) create() error {
	if s.user != nil {
		if err := os.Chown(s.dir, int(s.user.Uid), int(s.user.Gid)); err != nil {
			return fmt.Errorf("pgserver: %w", err)
		}
	}
	initdb, err := s.start("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	if <-initdb.ended; initdb.err != nil {
		return fmt.Errorf("pgserver: initdb: %w; its last words:\n%s", initdb.err, initdb.lastWords())
	}
	for range tries {
		s.Addr = freeAddr()
		if err = s.Restart(); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	return err
}

// URL is how to connect to the server.
func (s *Server) URL() string { return "postgres://postgres@" + s.Addr + "/postgres?sslmode=disable" }

// Crash ends the server at once, and all sessions with it; its directory stays, for Restart.
func (s *Server) Crash() error { return s.proc.end(syscall.SIGQUIT) }

// Restart runs the server again after a Crash, with the data that it had.
func (s *Server) Restart() error {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	args := []string{"-D", s.data()}
	// A crash of the machine isn't tested, so nothing has to reach the disk.
	for _, set := range slices.Concat([]string{"listen_addresses=" + host, "port=" + port, "unix_socket_directories=", "fsync=off"}, s.args) {
		args = append(args, "-c", set)
	}
	if s.proc, err = s.start("postgres", args...); err != nil {
		return err
	}
	if err := s.await(); err != nil {
		return errors.Join(err, s.proc.end(syscall.SIGQUIT))
	}
	return nil
}

// Stop ends the server and removes its directory.
func (s *Server) Stop() error { return errors.Join(s.proc.end(syscall.SIGQUIT), os.RemoveAll(s.dir)) }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// await returns once the server answers, and an error when it ends before or takes too long.
func (s *Server) await() error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if s.answers() {
			return nil
		}
		select {
		case <-s.proc.ended:
			return fmt.Errorf("pgserver: postgres ended before it answered on %s; its last words:\n%s", s.Addr, s.proc.lastWords())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("pgserver: no answer on %s within %v; its last words:\n%s", s.Addr, patience, s.proc.lastWords())
}

// answers reports whether a server answers, and is the one meant: another may have taken the port first.
func (s *Server) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return false
	}
	defer conn.Close(ctx)
	var dir string
	return conn.QueryRow(ctx, "SHOW data_directory").Scan(&dir) == nil && dir == s.data()
}

// freeAddr picks a port nobody listens on, below those that systems hand to outgoing connections.
func freeAddr() string {
	for {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(22_000+rand.N(10_000)))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
}

// Use returns url, or when that is empty the URL of a server that lives until stop.
func Use(url string) (is string, stop func() error, err error) {
	if url != "" {
		return url, func() error { return nil }, nil
	}
	s, err := Start()
	if err != nil {
		return "", nil, err
	}
	return s.URL(), s.Stop, nil
}
