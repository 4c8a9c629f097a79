package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
	"github.com/redis/go-redis/v9"
)

var (
	//go:embed get.lua
	getLua    string
	getScript = redis.NewScript(getLua)
)

// Get returns the entry of key, in one command: a plain HGET while the server's clock is known, else a script that
// asks for the time as well.
func (s *Store) Get(ctx context.Context, key cache.Key) (cache.Entry, error) {
	if !s.clock.known() {
		return s.getWithTime(ctx, key)
	}
	data, err := redislock.Do(ctx, s.steps, func(ctx context.Context) ([]byte, error) {
		return s.rdb.HGet(ctx, s.space.Key("v", key.Name), key.Schema).Bytes()
	})
	if err != nil {
		return cache.Entry{}, state(absent(err))
	}
	e := entry(data, s.clock.now())
	if e.Age < 0 { // the server's clock is ahead of what we know, or the entry is not to be believed
		return s.getWithTime(ctx, key)
	}
	return e, nil
}

// GetPromptly returns the entry of key if it comes at once.
func (s *Store) GetPromptly(ctx context.Context, key cache.Key) (cache.Entry, error) {
	e, err := s.getPromptly(ctx, key)
	if errors.Is(err, redislock.ErrConnectionRefused) {
		return cache.Entry{}, fmt.Errorf("%w: %w", cache.ErrUnreachable, err)
	}
	return e, err
}

func (s *Store) getPromptly(ctx context.Context, key cache.Key) (cache.Entry, error) {
	if !s.clock.known() {
		sent := time.Now()
		reply, err := redislock.PromptScript(ctx, s.steps, getScript, []string{s.space.Key("v", key.Name)}, key.Schema)
		return s.withTime(reply, sent, err)
	}
	data, err := redislock.Promptly(ctx, s.steps, func(ctx context.Context, c *redis.Client) ([]byte, error) {
		return c.HGet(ctx, s.space.Key("v", key.Name), key.Schema).Bytes()
	})
	if err != nil {
		return cache.Entry{}, absent(err)
	}
	if e := entry(data, s.clock.now()); e.Age >= 0 {
		return e, nil
	}
	return cache.Entry{}, errAhead
}

var errAhead = errors.New("redisstore: the server's clock is ahead of what is known of it")

func (s *Store) getWithTime(ctx context.Context, key cache.Key) (cache.Entry, error) {
	sent := time.Now()
	reply, err := s.steps.Read(ctx, getScript, []string{s.space.Key("v", key.Name)}, key.Schema).Slice()
	e, err := s.withTime(reply, sent, err)
	return e, state(err)
}

// withTime reads the reply of a script that also tells the time.
func (s *Store) withTime(reply []any, sent time.Time, err error) (cache.Entry, error) {
	if err != nil {
		return cache.Entry{}, absent(err)
	}
	now := s.clock.observe(sent, number(at(reply, 0)))
	data, ok := at(reply, 1).(string)
	if !ok {
		return cache.Entry{}, cache.ErrNotFound
	}
	return entry([]byte(data), now), nil
}

// absent says that there is no entry, where that is what the error means: no such field, or not our kind of key.
func absent(err error) error {
	if errors.Is(err, redis.Nil) || strings.Contains(err.Error(), "WRONGTYPE") {
		return cache.ErrNotFound
	}
	return err
}

// state adds to an error what it says of the server.
func state(err error) error {
	switch {
	case redislock.Unreachable(err):
		return fmt.Errorf("%w: %w", cache.ErrUnreachable, err)
	case redislock.Refused(err):
		return fmt.Errorf("%w: %w", cache.ErrRefused, err)
	}
	return err
}

func at(reply []any, i int) any {
	if i < len(reply) {
		return reply[i]
	}
	return nil
}
