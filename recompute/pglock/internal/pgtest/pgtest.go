// Package pgtest hands real PostgreSQL servers to tests.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgserver"
)

// Start runs a server for the time of the test.
//
// Where PostgreSQL isn't installed the test is skipped; under CI=true it fails, so that no green run can hide what it left out.
func Start(t testing.TB, args ...string) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(args...)
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func missing(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, pgserver.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip("needs a real PostgreSQL: ", err)
	}
	t.Fatal(err)
}

// shared is the server that the tests of a package share: to start one takes seconds.
var shared struct {
	server *pgserver.Server
	err    error
}

// Main runs the tests of a package with a server that they can share, for TestMain. after, if not nil, runs once the
// server has ended, and says what the exit code shall be.
func Main(m *testing.M, after func(code int) int) {
	shared.server, shared.err = pgserver.Start("max_connections=300")
	code := m.Run()
	if shared.err == nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if after != nil {
		code = after(code)
	}
	os.Exit(code)
}

// Shared returns the server of the package's tests. They must not end it.
func Shared(t testing.TB) *pgserver.Server {
	t.Helper()
	if shared.err != nil {
		missing(t, shared.err)
	}
	return shared.server
}

// Pool connects for the time of the test. Each change is applied to its options, which allow 8 connections otherwise.
func Pool(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 8
	for _, f := range change {
		f(config)
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(t.Context()), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeSoon(t, pool) })
	return pool
}

// closeSoon closes the pool, which waits for connections that somebody keeps: that is a leak.
func closeSoon(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Errorf("%d connections were not given back", pool.Stat().AcquiredConns())
	}
}
