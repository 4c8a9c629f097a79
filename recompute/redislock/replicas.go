package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrReplicas says that too few replicas acknowledged a lease ([Options].Replicas) within most of the budget of a step. One that was
// to be granted is taken back.
var ErrReplicas = errors.New("redislock: too few replicas have acknowledged")

// write runs a script of the locker that may safely run twice, and waits for its replicas.
func (l *Locker) write(ctx context.Context, script *redis.Script, keys []string, args ...any) *redis.Cmd {
	return l.script(ctx, keys[0], true, func(ctx context.Context) (*redis.Cmd, error) {
		if l.replicas > 0 {
			return l.replicated(ctx, script, keys, args)
		}
		cmd := l.steps.send(ctx, l.steps.rdb, script, keys, args)
		return cmd, cmd.Err()
	})
}

func (l *Locker) replicated(ctx context.Context, script *redis.Script, keys []string, args []any) (*redis.Cmd, error) {
	node, err := l.node(ctx, keys[0])
	if err != nil {
		return nil, err
	}
	// WAIT speaks of the writes of its own connection, so it goes along with the script; as does the script's text, since a
	// pipeline can't be asked again when the server has forgotten it.
	p := node.Pipeline()
	cmd := script.Eval(ctx, p, keys, args...)
	acked := redis.NewIntCmd(ctx, "wait", l.replicas, l.patience().Milliseconds())
	_ = p.Process(ctx, acked) // only queued
	_, err = p.Exec(ctx)
	switch {
	case cmd.Err() != nil:
		return cmd, err
	case !done(cmd.Val()):
		return cmd, nil
	}
	return cmd, l.enough(acked)
}

// done says whether a script did what it was asked to. What it refuses needs no replica.
func done(reply any) bool {
	_, granted := reply.([]any)
	return granted || reply == int64(1)
}

// patience is how long replicas may take: within the budget, so that the answer still comes.
func (l *Locker) patience() time.Duration { return max(l.steps.budget*2/3, time.Millisecond) }

func (l *Locker) enough(acked *redis.IntCmd) error {
	if n, err := acked.Result(); err != nil {
		return err
	} else if n < int64(l.replicas) {
		return fmt.Errorf("%w: %d of %d within %v", ErrReplicas, n, l.replicas, l.patience())
	}
	return nil
}

// node is the client of the server that has the key.
func (l *Locker) node(ctx context.Context, key string) (*redis.Client, error) {
	switch c := l.steps.rdb.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, key)
	}
	return nil, fmt.Errorf("redislock: a %T can't be asked for replicas", l.steps.rdb)
}
