package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
)

// Server is the Redis server that the replicas share.
type Server struct {
	Addr    string
	Version string
	own     *redisserver.Server // nil when the server was given
}

// openServer uses the server at addr, or starts one where addr is empty.
func openServer(ctx context.Context, addr string) (*Server, error) {
	redis.SetLogger(silent{})
	s := &Server{Addr: addr}
	if addr == "" {
		own, err := redisserver.Start()
		if err != nil { // ErrMissing says how to install it
			return nil, fmt.Errorf("%w (or give -redis the address of a running one)", err)
		}
		s.Addr, s.own = own.Addr, own
	}
	var err error
	if s.Version, err = askVersion(ctx, s.Addr); err != nil {
		return nil, errors.Join(fmt.Errorf("no Redis server answers at %s: %w", s.Addr, err), s.Close())
	}
	return s, nil
}

// Close stops the server that openServer started.
func (s *Server) Close() error {
	if s.own == nil {
		return nil
	}
	return s.own.Stop()
}

// silent keeps go-redis from writing to stderr, and into the progress bar: what it would say comes back as errors.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func askVersion(ctx context.Context, addr string) (string, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialTimeout: 2 * time.Second, ReadTimeout: 2 * time.Second})
	defer rdb.Close()
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "", errors.New("INFO names no redis_version")
}
