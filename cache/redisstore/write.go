package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
	"github.com/redis/go-redis/v9"
)

var (
	//go:embed begin.lua
	beginLua    string
	beginScript = redis.NewScript(beginLua)
	//go:embed set.lua
	setLua    string
	setScript = redis.NewScript(setLua)
	//go:embed delete.lua
	deleteLua    string
	deleteScript = redis.NewScript(deleteLua)
	//go:embed fail.lua
	failLua    string
	failScript = redis.NewScript(failLua)
)

// Begin takes a number and returns the entry that stands if it is newer than seen.
func (s *Store) Begin(ctx context.Context, key cache.Key, seen cache.Fence, hold time.Duration) (cache.Fence, cache.Entry, error) {
	if hold < time.Millisecond { // a sum that ran over; Redis would take it for "delete"
		hold = math.MaxInt64
	}
	sent := time.Now()
	reply, err := s.steps.Write(ctx, beginScript, s.keys(key.Name), key.Schema, int64(seen), hold.Milliseconds()).Slice()
	if err != nil {
		return 0, cache.Entry{}, fmt.Errorf("redisstore: begin: %w", state(err))
	}
	now := s.clock.observe(sent, number(at(reply, 1)))
	fence := cache.Fence(number(at(reply, 0)))
	data, ok := at(reply, 2).(string)
	switch {
	case fence == 0:
		return 0, cache.Entry{}, failure(data)
	case ok:
		return fence, entry([]byte(data), now), nil
	}
	return fence, cache.Entry{}, nil
}

// Set writes an entry under its fence.
func (s *Store) Set(ctx context.Context, key cache.Key, w cache.Write) error {
	ttl := w.TTL.Milliseconds()
	switch {
	case len(w.Data) > s.o.MaxBytes:
		return fmt.Errorf("redisstore: set: %d bytes, allowed are %d: %w", len(w.Data), s.o.MaxBytes, cache.ErrTooBig)
	case len(w.Data) > 0 && w.TTL <= 0:
		return fmt.Errorf("redisstore: set: ttl is %v, must be positive", w.TTL)
	}
	sole := 0
	if w.Sole {
		sole = 1
	}
	head := redislock.Message{Kind: published, Name: key.Name}.Head() + key.Schema
	sent := time.Now()
	reply, err := s.steps.Write(ctx, setScript, s.keys(key.Name),
		key.Schema, int64(w.Fence), max(ttl, 1), w.Data, sole, s.hub.Channel(), head, pushed).Slice()
	if err != nil {
		return fmt.Errorf("redisstore: set: %w", state(err))
	}
	s.clock.observe(sent, number(at(reply, 1)))
	if at(reply, 0) != int64(1) {
		return cache.ErrFenced
	}
	return nil
}

// Fail remembers a failure and announces it.
func (s *Store) Fail(ctx context.Context, key cache.Key, f cache.Failure) error {
	head := redislock.Message{Kind: failed, Name: key.Name}.Head() + key.Schema
	text := failedText + f.Text[:min(len(f.Text), longestText)]
	if f.Pass {
		text = passText
	}
	got, err := s.steps.Write(ctx, failScript, s.keys(key.Name)[1:],
		key.Schema, int64(f.Fence), f.Pause.Milliseconds(), text, s.hub.Channel(), head).Int()
	switch {
	case err != nil:
		return fmt.Errorf("redisstore: fail: %w", state(err))
	case got != 1:
		return cache.ErrFenced
	}
	return nil
}

// What is remembered of a failure begins with one of these.
const (
	failedText = "E"
	passText   = "P"
)

// failure returns the error that a text stands for.
func failure(text string) error {
	if text == passText {
		return cache.ErrPass
	}
	return &cache.FailedError{Text: strings.TrimPrefix(text, failedText)}
}

// Delete removes the entries of names.
func (s *Store) Delete(ctx context.Context, ago time.Duration, names ...string) error {
	var faults []error
	for _, name := range names {
		note := redislock.Message{Kind: deleted, Name: name}.Head()
		err := s.steps.Erase(ctx, deleteScript, s.keys(name),
			memory.Milliseconds(), s.hub.Channel(), note, ago.Milliseconds()).Err()
		if err != nil {
			faults = append(faults, fmt.Errorf("redisstore: delete: %w", state(err))) // without the name: it may be a secret, and errors are logged
		}
	}
	return errors.Join(faults...)
}
