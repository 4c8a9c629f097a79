package redislock

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// mode remembers what the server does for this user.
type mode struct {
	voter        bool // it is one of a quorum, where there is no other way than scripts
	noScripts    atomic.Bool
	transactions atomic.Bool
	commands     sync.Map // names of conditional commands that were refused
}

func (m *mode) scripts() bool { return !m.noScripts.Load() }

// refused says whether an error means that no script is run here, neither now nor later.
func (m *mode) refused(err error) bool {
	if err == nil || m.voter || !redis.IsPermissionError(err) && !strings.Contains(err.Error(), "unknown command") {
		return false
	}
	text := strings.ReplaceAll(strings.ToLower(err.Error()), "`", "'") // as older ones quote
	if !strings.Contains(text, "'eval") {                              // the command that is refused; a script that may not do something names another
		return false
	}
	m.noScripts.Store(true)
	return true
}

// prove makes sure, once, that transactions work here: where MULTI alone is refused, what follows it would be done all the same, one by
// one and without regard to others.
func (m *mode) prove(ctx context.Context, rdb redis.UniversalClient, key string) error {
	if m.transactions.Load() {
		return nil
	}
	err := reason(rdb.TxPipelined(ctx, func(p redis.Pipeliner) error { p.Exists(ctx, key); return nil }))
	m.transactions.Store(err == nil)
	return err
}

// script runs a step that is a script. That the user may run none is no trouble: there is another way.
func (l *Locker) script(ctx context.Context, key string, writes bool, step func(ctx context.Context) (*redis.Cmd, error)) *redis.Cmd {
	cmd, err := doTo(ctx, l.steps, key, writes, func(ctx context.Context) (*redis.Cmd, error) {
		cmd, err := step(ctx)
		if l.mode.refused(err) {
			return cmd, nil
		}
		return cmd, err
	})
	if cmd == nil {
		cmd = redis.NewCmd(ctx)
	}
	if err != nil {
		cmd.SetErr(err)
	}
	return cmd
}

// forbidden says whether an error means that the user of Redis may not do something. What a script may not do, servers say in words of
// their own: Redis 7.0, and from 7.2 on.
func forbidden(err error) bool {
	return err != nil && (redis.IsPermissionError(err) || containsAny(err.Error(), []string{"NOPERM ", "can't run this command", "ACL failure in script"}))
}

// explain adds to such an error where to look.
func (m *mode) explain(err error) error {
	switch {
	case !forbidden(err) || !m.scripts():
		return err
	case m.voter:
		return fmt.Errorf("%w (the user of Redis needs redislock.QuorumRights)", err)
	}
	return fmt.Errorf("%w (the user of Redis needs redislock.Rights)", err)
}
