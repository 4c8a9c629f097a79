package cache_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// shim is a Memory whose steps a test can hold up, fail or falsify. Each field may be nil.
type shim struct {
	*cache.Memory
	prompt bool                                         // is a cache.Prompter
	before func(ctx context.Context, step string) error // "get", "begin", "set", "fail", "delete"
	after  func(ctx context.Context, step string) error // the step is done, its reply may be lost
	found  func(cache.Entry) cache.Entry                // what Get and Begin say in place of what they found
	writes func(cache.Key, cache.Write)                 // accepted ones
}

func (s *shim) step(hook func(context.Context, string) error, ctx context.Context, step string) error {
	if hook == nil {
		return nil
	}
	return hook(ctx, step)
}

func (s *shim) entry(e cache.Entry) cache.Entry {
	if s.found == nil || e.Data == nil {
		return e
	}
	return s.found(e)
}

func (s *shim) Get(ctx context.Context, key cache.Key) (cache.Entry, error) {
	if err := s.step(s.before, ctx, "get"); err != nil {
		return cache.Entry{}, err
	}
	e, err := s.Memory.Get(ctx, key)
	if err := s.step(s.after, ctx, "get"); err != nil {
		return cache.Entry{}, err
	}
	return s.entry(e), err
}

func (s *shim) Begin(ctx context.Context, key cache.Key, seen cache.Fence, hold time.Duration) (cache.Fence, cache.Entry, error) {
	if err := s.step(s.before, ctx, "begin"); err != nil {
		return 0, cache.Entry{}, err
	}
	fence, e, err := s.Memory.Begin(ctx, key, seen, hold)
	return fence, s.entry(e), err
}

func (s *shim) Set(ctx context.Context, key cache.Key, w cache.Write) error {
	if err := s.step(s.before, ctx, "set"); err != nil {
		return err
	}
	err := s.Memory.Set(ctx, key, w)
	if err == nil && s.writes != nil {
		s.writes(key, w)
	}
	if err := s.step(s.after, ctx, "set"); err != nil {
		return err
	}
	return err
}

// GetPromptly refuses, unless prompt is set: a store that may be made to hang can't be asked on its caller's goroutine.
func (s *shim) GetPromptly(ctx context.Context, key cache.Key) (cache.Entry, error) {
	if !s.prompt {
		return cache.Entry{}, errDown
	}
	return s.Get(ctx, key)
}

func (s *shim) Fail(ctx context.Context, key cache.Key, f cache.Failure) error {
	if err := s.step(s.before, ctx, "fail"); err != nil {
		return err
	}
	return s.Memory.Fail(ctx, key, f)
}

func (s *shim) Delete(ctx context.Context, ago time.Duration, names ...string) error {
	if err := s.step(s.before, ctx, "delete"); err != nil {
		return err
	}
	err := s.Memory.Delete(ctx, ago, names...)
	if err := s.step(s.after, ctx, "delete"); err != nil {
		return err
	}
	return err
}

// quiet is a store that tells of nothing.
type quiet struct {
	cache.Store
	memory *cache.Memory
	cache.Prompter
}

func (q quiet) Locker() recompute.Locker { return q.memory.Locker() }

func newQuiet(m *cache.Memory) quiet { return quiet{m, m, m} }

// locks is a locker whose steps a test can hold up or fail. Each field may be nil.
type locks struct {
	recompute.Locker
	acquire, extend, release func(ctx context.Context) error
	acquired                 atomic.Int64
}

type lock struct {
	recompute.Lease
	of *locks
}

func (l *locks) Acquire(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	l.acquired.Add(1)
	if l.acquire != nil {
		if err := l.acquire(ctx); err != nil {
			return nil, err
		}
	}
	lease, err := l.Locker.Acquire(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	return lock{lease, l}, nil
}

func (l lock) Extend(ctx context.Context, ttl time.Duration) error {
	if l.of.extend != nil {
		if err := l.of.extend(ctx); err != nil {
			return err
		}
	}
	return l.Lease.Extend(ctx, ttl)
}

func (l lock) Release(ctx context.Context) error {
	if l.of.release != nil {
		if err := l.of.release(ctx); err != nil {
			return err
		}
	}
	return l.Lease.Release(ctx)
}

// generous grants every lease to everybody, as after a failover that lost them.
type generous struct{}

func (generous) Acquire(context.Context, string, time.Duration) (recompute.Lease, error) {
	return generous{}, nil
}
func (generous) Extend(context.Context, time.Duration) error { return nil }
func (generous) Release(context.Context) error               { return nil }
