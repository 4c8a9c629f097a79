// Package backend finds the Redis server that the replicas share: a given one, or a compatible one inside this process.
package backend

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const patience = 3 * time.Second // with a server that should be there

// Backend is a Redis server that answers.
type Backend struct {
	Addr     string // as Open takes it, so that another process can share the server
	Embedded bool
	options  redis.Options
	close    func()
}

// Open connects to the server at addr, "host:port" or a URL as in redis://:secret@host:port/1. An empty addr starts an embedded one.
func Open(ctx context.Context, addr string) (*Backend, error) {
	b := &Backend{Addr: addr, close: func() {}}
	if addr == "" {
		if err := b.embed(); err != nil {
			return nil, fmt.Errorf("backend: start the embedded server: %w", err)
		}
	}
	options, err := parse(b.Addr)
	if err != nil {
		b.Close()
		return nil, err
	}
	b.options = *options
	if err := b.ping(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Client returns a client of its own for each call; the caller closes it.
func (b *Backend) Client() *redis.Client {
	options := b.options
	return redis.NewClient(&options)
}

// Close stops the embedded server, if it is one.
func (b *Backend) Close() { b.close() }

func (b *Backend) String() string {
	if b.Embedded {
		return "embedded miniredis at " + b.options.Addr
	}
	return "Redis at " + b.options.Addr
}

func (b *Backend) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	options := b.options
	options.MaxRetries, options.DialerRetries = -1, 1 // a wrong address should be told at once
	rdb := redis.NewClient(&options)
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("backend: no answer from Redis at %s: %w", b.options.Addr, err)
	}
	return nil
}

func parse(addr string) (*redis.Options, error) {
	if !strings.Contains(addr, "://") {
		return &redis.Options{Addr: addr}, nil
	}
	options, err := redis.ParseURL(addr)
	if err != nil {
		return nil, fmt.Errorf("backend: %w", err)
	}
	return options, nil
}
