package redislock

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// once is a client that sends a script a single time, where go-redis would send it again after a lost reply and hide
// that it did.
type once struct{ redis.UniversalClient }

func (c once) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return c.send(ctx, "eval", script, keys, args)
}

func (c once) EvalSha(ctx context.Context, hash string, keys []string, args ...any) *redis.Cmd {
	return c.send(ctx, "evalsha", hash, keys, args)
}

func (c once) send(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	words := append(make([]any, 0, 3+len(keys)+len(args)), name, script, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	cmd := redis.NewCmd(ctx, append(words, args...)...)
	cmd.SetFirstKeyPos(3)
	_ = c.Process(ctx, single{cmd}) // the error is in cmd
	return cmd
}

type single struct{ *redis.Cmd }

// NoRetry is what go-redis asks a command.
func (single) NoRetry() bool { return true }
