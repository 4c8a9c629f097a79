package redislock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

var (
	//go:embed extend.lua
	extendLua    string
	extendScript = redis.NewScript(extendLua)
	//go:embed release.lua
	releaseLua    string
	releaseScript = redis.NewScript(releaseLua)
)

// retries are the pauses between tries of a step whose outcome is not known.
var retries = recompute.Backoff{Min: 10 * time.Millisecond, Max: 250 * time.Millisecond, Jitter: 0.5}

type lease struct {
	locker     *Locker
	name       string
	lock, mark string // the Redis keys of the lease and of its taking back
	fence      string // and of the number of the last grant; "": it has none
	queue      string // and of the processes that wait; "": nobody queues
	ttl        time.Duration
	quiet      bool   // its end is not announced
	token      string // random for each lease, never a user's: whoever knows it owns the lease
}

func (l *Locker) lease(name, token string, ttl time.Duration) *lease {
	lock := l.space.Key(l.role, name)
	h := &lease{locker: l, name: name, lock: lock, mark: lock + ":" + token, ttl: ttl, token: token}
	if l.fenced {
		h.fence = l.space.Key("fence", name)
	}
	if l.queues {
		h.queue = l.space.Key("queue", name)
	}
	return h
}

func (h *lease) acquire(ctx context.Context) (answer, error) {
	if h.locker.mode.scripts() {
		keys, args := []string{h.lock, h.mark}, []any{h.token, h.ttl.Milliseconds()}
		if h.queue != "" {
			fence, memory := h.lock, any("") // without a fence, a key in the same slot
			if h.fence != "" {
				fence, memory = h.fence, (h.ttl + fenceMemory).Milliseconds()
			}
			keys, args = append(keys, fence, h.queue), append(args, memory)
			args = append(args, h.locker.ear.queued(h.name)...)
		}
		cmd := h.locker.write(ctx, acquireScript, keys, args...)
		if !h.locker.mode.refused(cmd.Err()) {
			return read(cmd.Val()), h.locker.mode.explain(cmd.Err())
		}
	}
	return h.acquireByTransaction(ctx)
}

// Extend makes the lease last ttl from now.
func (h *lease) Extend(ctx context.Context, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	got, err := h.extend(ctx, ttl)
	switch {
	case err != nil:
		return fmt.Errorf("redislock: extend: %w", err)
	case got != 1:
		return recompute.ErrLost
	}
	return nil
}

func (h *lease) extend(ctx context.Context, ttl time.Duration) (int, error) {
	note := Message{Kind: Renewed, Name: h.name}.encode()
	if h.locker.mode.scripts() {
		cmd := h.locker.write(ctx, extendScript, []string{h.lock}, h.token, ttl.Milliseconds(), h.locker.channel, note)
		if !h.locker.mode.refused(cmd.Err()) {
			got, err := cmd.Int()
			return got, h.locker.mode.explain(err)
		}
	}
	return h.extendByTransaction(ctx, ttl, note)
}

// Release ends the lease. It runs on a context of its own, so that it works when the work's has ended, and tries
// again when the outcome is not known. Then "nobody holds it" means that an earlier try did it. After three tries it
// returns, and goes on behind for as long as the lease could last.
func (h *lease) Release(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var unknown error
	tries := 0
	for pause := range retries.Pauses() {
		got, err := h.release(ctx, 0)
		tries++
		switch {
		case err == nil && (got == 1 || got == 0 && tries > 1):
			return nil
		case err == nil:
			return recompute.ErrLost
		case tries == 3:
			h.takeBack()
			return fmt.Errorf("redislock: release: %w", err)
		}
		unknown = err
		recompute.Pause(ctx, pause)
	}
	return unknown
}

// takeBack undoes an acquire whose outcome is not known, behind the caller's back. The mark it leaves refuses
// the acquire should it arrive after its undoing.
func (h *lease) takeBack() {
	var uncounted *recompute.Tasks
	_ = uncounted.Go(func(ctx context.Context) {
		patience := h.ttl + 10*time.Second
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for pause := range retries.Pauses() {
			if _, err := h.release(ctx, patience); err == nil || errors.Is(err, redis.ErrClosed) || !recompute.Pause(ctx, pause) {
				return
			}
		}
	})
}

func (h *lease) release(ctx context.Context, mark time.Duration) (int, error) {
	note := Message{Kind: Released, Name: h.name}.encode()
	if h.locker.mode.scripts() {
		keys := []string{h.lock, h.mark}
		if h.queue != "" {
			keys = append(keys, h.queue)
		}
		cmd := h.locker.script(ctx, h.lock, false, func(ctx context.Context) (*redis.Cmd, error) {
			steps, args := h.locker.steps, []any{h.token, h.channel(), note, mark.Milliseconds()}
			cmd := steps.send(ctx, once{steps.rdb}, releaseScript, keys, args) // we count the tries ourselves
			return cmd, cmd.Err()
		})
		if !h.locker.mode.refused(cmd.Err()) {
			got, err := cmd.Int()
			return got, h.locker.mode.explain(err)
		}
	}
	return h.releaseByTransaction(ctx, mark, note)
}

// channel is where the end of the lease is announced; "": nowhere.
func (h *lease) channel() string {
	if h.quiet {
		return ""
	}
	return h.locker.channel
}
