package redislock

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Where scripts are refused, newer servers have commands that look at the token by themselves: one round trip instead of three. Which a
// server has, and this user may use, is not asked, as that takes rights too: they are sent, and one that is refused is not sent again.
// A server that doesn't know IFEQ refuses it, none ignores it.

// extendIf does what extend.lua does, with SET … IFEQ (Redis 8.4, Valkey 8.1); not decided: there is no such thing here.
func (h *lease) extendIf(ctx context.Context, ttl time.Duration) (got int, decided bool, err error) {
	if h.locker.replicas > 0 { // for them one has to wait on the connection of the change
		return 0, false, nil
	}
	return h.conditional(ctx, true, "set", h.lock, h.token, "ifeq", h.token, "px", ttl.Milliseconds())
}

// releaseIf deletes the lease with DELEX … IFEQ (Redis 8.4) or DELIFEQ (Valkey 9); not done: neither is here, or the lease is not ours.
// DELEX always has its IFEQ, or it would delete anybody's.
func (h *lease) releaseIf(ctx context.Context) (done bool, err error) {
	got, decided, err := h.conditional(ctx, false, "delex", h.lock, "ifeq", h.token)
	if !decided && err == nil {
		got, _, err = h.conditional(ctx, false, "delifeq", h.lock, h.token)
	}
	return got == 1, err
}

// conditional runs a step that is one command, and says whether it did what it is for: 1, or 0 because the token is not ours.
func (h *lease) conditional(ctx context.Context, writes bool, words ...any) (got int, decided bool, err error) {
	steps, refused, name := h.locker.steps, &h.locker.mode.commands, words[0]
	if _, is := refused.Load(name); is {
		return 0, false, nil
	}
	reply, err := doTo(ctx, steps, h.lock, writes, func(ctx context.Context) (any, error) {
		cmd := redis.NewCmd(ctx, words...)
		send := redis.Cmder(cmd)
		if !writes {
			send = single{cmd} // a release counts its tries itself
		}
		switch err := steps.rdb.Process(ctx, send); {
		case errors.Is(err, redis.Nil), redis.HasErrorPrefix(err, "WRONGTYPE"): // what is no string is nobody's
			return 0, nil
		case redis.HasErrorPrefix(err, "OOM"): // Valkey's transactions can extend even then
			return nil, nil
		case unknown(err):
			refused.Store(name, true)
			return nil, nil
		default:
			return cmd.Val(), err
		}
	})
	if reply == "OK" || reply == int64(1) {
		got = 1
	}
	return got, reply != nil, err
}

// unknown says whether an error means that the server doesn't have a command or its option, or not for this user. Each server has words of
// its own for that, while what passes has a code.
func unknown(err error) bool {
	return forbidden(err) || err != nil && classify(context.Background(), err) == none && strings.HasPrefix(err.Error(), "ERR ")
}
