package cachetest

import (
	"context"
	"fmt"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// promptly is the longest time that GetPromptly may take, by the contract.
const promptly = 50 * time.Millisecond

// through does a step, or what is to happen in its place.
func through[T any](ctx context.Context, c *Chaos, f fate, do func() (T, error)) (v T, err error) {
	if err := c.before(ctx, f); err != nil {
		return v, err
	}
	got, err := do()
	if f.lost {
		return v, c.note(ReplyLost, f.step)
	}
	return got, err
}

// before does what happens to a step before it is done, and returns an error if it is not to be done.
func (c *Chaos) before(ctx context.Context, f fate) error {
	delay, budget := f.delay, c.o.Budget
	if f.step == OnGetPromptly {
		delay, budget = min(delay, promptly/2), min(budget, promptly/2)
	}
	if delay > 0 {
		_ = c.note(Delayed, f.step)
		recompute.Pause(ctx, delay) // what is to be done under an ended context is the step's own affair
	}
	switch {
	case f.hung:
		err := c.note(Hung, f.step)
		if recompute.Pause(ctx, budget); ctx.Err() != nil {
			return fmt.Errorf("%w: %w", err, ctx.Err())
		}
		return err
	case f.refused:
		return c.note(Refused, f.step)
	}
	return nil
}

// Get returns the entry of key.
func (c *Chaos) Get(ctx context.Context, key cache.Key) (cache.Entry, error) {
	return through(ctx, c, c.fate(OnGet), func() (cache.Entry, error) { return c.store.Get(ctx, key) })
}

// GetPromptly returns the entry of key if the other store can do that promptly.
func (c *Chaos) GetPromptly(ctx context.Context, key cache.Key) (cache.Entry, error) {
	p, ok := c.store.(cache.Prompter)
	if !ok {
		return cache.Entry{}, fmt.Errorf("%w: the store is no cache.Prompter", ErrChaos)
	}
	return through(ctx, c, c.fate(OnGetPromptly), func() (cache.Entry, error) { return p.GetPromptly(ctx, key) })
}

// Begin takes a number.
func (c *Chaos) Begin(ctx context.Context, key cache.Key, seen cache.Fence, hold time.Duration) (cache.Fence, cache.Entry, error) {
	type reply struct {
		fence cache.Fence
		entry cache.Entry
	}
	r, err := through(ctx, c, c.fate(OnBegin), func() (r reply, err error) {
		r.fence, r.entry, err = c.store.Begin(ctx, key, seen, hold)
		return r, err
	})
	return r.fence, r.entry, err
}

// Set writes an entry.
func (c *Chaos) Set(ctx context.Context, key cache.Key, w cache.Write) error {
	return c.do(ctx, OnSet, func() error { return c.store.Set(ctx, key, w) })
}

// Fail remembers a failure.
func (c *Chaos) Fail(ctx context.Context, key cache.Key, f cache.Failure) error {
	return c.do(ctx, OnFail, func() error { return c.store.Fail(ctx, key, f) })
}

// Delete removes names.
func (c *Chaos) Delete(ctx context.Context, ago time.Duration, names ...string) error {
	return c.do(ctx, OnDelete, func() error { return c.store.Delete(ctx, ago, names...) })
}

// do is through for a step that returns nothing.
func (c *Chaos) do(ctx context.Context, step Step, do func() error) error {
	_, err := through(ctx, c, c.fate(step), func() (struct{}, error) { return struct{}{}, do() })
	return err
}
