package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// watch runs one step as a transaction, for users who may not run scripts: look watches the keys and returns what it got and the changes
// that follow from what it saw; they are made only if the keys are still the same. What it got is handed on, never shared: a step that
// outlives its budget is still at it.
func watch[T any](
	ctx context.Context, h *lease, writes bool, look func(tx *redis.Tx) (got T, change func(redis.Pipeliner), err error), keys ...string,
) (T, error) {
	got, err := doTo(ctx, h.locker.steps, h.lock, writes, func(ctx context.Context) (got T, err error) {
		if err := h.locker.mode.prove(ctx, h.locker.steps.rdb, h.lock); err != nil {
			return got, err
		}
		err = redis.TxFailedErr
		for errors.Is(err, redis.TxFailedErr) && ctx.Err() == nil { // each time, another has got something done
			err = h.locker.steps.rdb.Watch(ctx, func(tx *redis.Tx) (err error) {
				var change func(redis.Pipeliner)
				if got, change, err = look(tx); err != nil || change == nil {
					return err
				}
				return h.change(ctx, tx, change, writes)
			}, keys...)
		}
		return got, err
	})
	if forbidden(err) {
		err = fmt.Errorf("scripts may not be run, and for a transaction a right is missing (see redislock.RightsWithoutScripts): %w", err)
	}
	return got, err
}

func (h *lease) change(ctx context.Context, tx *redis.Tx, change func(redis.Pipeliner), writes bool) error {
	err := reason(tx.TxPipelined(ctx, func(p redis.Pipeliner) error { change(p); return nil }))
	if err == nil && writes && h.locker.replicas > 0 {
		err = h.locker.enough(tx.Wait(ctx, h.locker.replicas, h.locker.patience()))
	}
	return err
}

// reason is the error of a transaction, or of the command that it is for: "discarded because of previous errors" says little.
func reason(made []redis.Cmder, err error) error {
	if !redis.IsExecAbortError(err) {
		return err
	}
	for _, cmd := range made {
		if cmd.Err() != nil && !redis.IsExecAbortError(cmd.Err()) {
			return cmd.Err()
		}
	}
	return err
}

// acquireByTransaction does what acquire.lua does. SET … NX would not do: the lease is granted only if it has not been taken back, its number
// is taken with it, and an earlier try whose reply was lost has to be known again.
func (h *lease) acquireByTransaction(ctx context.Context) (answer, error) {
	keys := []string{h.lock, h.mark}
	if h.fence != "" {
		keys = append(keys, h.fence)
	}
	return watch(ctx, h, true, func(tx *redis.Tx) (answer, func(redis.Pipeliner), error) {
		got := answer{left: -1}
		holder, err := text(tx.Get(ctx, h.lock))
		if err != nil {
			return got, nil, err
		}
		if left, err := tx.PTTL(ctx, h.lock).Result(); err != nil {
			return got, nil, err
		} else if holder != "" && holder != noString && holder != h.token && left >= 0 {
			got.left = left
			return got, nil, nil
		}
		if marked, err := tx.Exists(ctx, h.mark).Result(); err != nil || marked == 1 {
			return got, nil, err
		}
		got.granted = true
		if h.fence != "" {
			if got.fence, err = h.number(ctx, tx, holder == h.token); err != nil {
				return got, nil, err
			}
		}
		return got, func(p redis.Pipeliner) {
			if h.fence != "" {
				p.Set(ctx, h.fence, got.fence, h.ttl+fenceMemory)
			}
			p.Set(ctx, h.lock, h.token, h.ttl)
		}, nil
	}, keys...)
}

// number is the number of a grant: the last one, if that was this.
func (h *lease) number(ctx context.Context, tx *redis.Tx, granted bool) (int64, error) {
	last, err := text(tx.Get(ctx, h.fence))
	if err != nil {
		return 0, err
	}
	n, _ := strconv.ParseInt(last, 10, 64)
	if n < 0 || n > 1<<53-2 {
		n = 0 // nobody can have been granted that
	}
	if granted && n > 0 {
		return n, nil
	}
	now, err := tx.Time(ctx).Result()
	return max(n+1, now.UnixMicro()), err
}

// extendByTransaction does what extend.lua does, unless one command can.
func (h *lease) extendByTransaction(ctx context.Context, ttl time.Duration, note string) (int, error) {
	got, decided, err := h.extendIf(ctx, ttl)
	if !decided && err == nil {
		got, err = watch(ctx, h, true, func(tx *redis.Tx) (int, func(redis.Pipeliner), error) {
			holder, err := text(tx.Get(ctx, h.lock))
			if err != nil || holder != h.token {
				return 0, nil, err
			}
			return 1, func(p redis.Pipeliner) { p.PExpire(ctx, h.lock, ttl) }, nil
		}, h.lock)
	}
	h.announce(ctx, got, err, note)
	return got, err
}

// releaseByTransaction does what release.lua does, unless one command can, which leaves no mark and doesn't tell "nobody's" from "another's".
func (h *lease) releaseByTransaction(ctx context.Context, mark time.Duration, note string) (int, error) {
	if mark == 0 {
		if done, err := h.releaseIf(ctx); err != nil {
			return 0, err
		} else if done {
			h.announce(ctx, 1, nil, note)
			return 1, nil
		}
	}
	got, err := watch(ctx, h, false, func(tx *redis.Tx) (got int, change func(redis.Pipeliner), err error) {
		holder, err := text(tx.Get(ctx, h.lock))
		switch {
		case err != nil:
			return 0, nil, err
		case holder == h.token:
			got = 1
		case holder != "":
			got = -1
		}
		if got != 1 && mark == 0 {
			return got, nil, nil
		}
		return got, func(p redis.Pipeliner) {
			if got == 1 {
				p.Del(ctx, h.lock)
			}
			if mark > 0 {
				p.Set(ctx, h.mark, "", mark)
			}
		}, nil
	}, h.lock)
	h.announce(ctx, got, err, note)
	return got, err
}

// announce tells those who wait what was done. If they can't be told, it was done all the same.
func (h *lease) announce(ctx context.Context, got int, err error, note string) {
	if got != 1 || err != nil || h.channel() == "" {
		return
	}
	_, _ = doAt(ctx, h.locker.steps, h.channel(), func(ctx context.Context) (int64, error) {
		return h.locker.steps.rdb.Publish(ctx, h.channel(), note).Result()
	})
}

// What stands at a key and is no token.
const (
	noString    = "\x00no string"
	emptyString = "\x00empty"
)

// text reads a string, "" if there is nothing.
func text(cmd *redis.StringCmd) (string, error) {
	s, err := cmd.Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", nil
	case err != nil && redis.HasErrorPrefix(err, "WRONGTYPE"):
		return noString, nil
	case err == nil && s == "":
		return emptyString, nil
	}
	return s, err
}
