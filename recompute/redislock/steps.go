package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

// DefaultBudget is the time that one step on Redis may take. Whoever waits for one that fails, after he asked promptly, has waited a fifth
// of a second.
const DefaultBudget = 150 * time.Millisecond

// ErrBudget is the cause of the end of a step that took longer than its budget.
var ErrBudget = errors.New("redislock: Redis did not answer within the budget")

// Steps runs commands on a Redis client, each within a time budget that holds whatever the client's own timeouts
// and retries are, and not at all while a breaker is open: after three failures in a row nothing waits for Redis,
// but for one probe each half second. Of several servers (cluster, ring) each has breakers of its own.
type Steps struct {
	rdb     redis.UniversalClient
	budget  time.Duration
	over    error    // ErrBudget, with the budget
	direct  bool     // the client ends a command at its context's deadline by itself
	loaded  sync.Map // hashes of the scripts that the server has been given
	servers *servers
	reload  *reloader
	prompt  *prompt // nil: there is none
}

// StepOptions configures [Steps]. The zero value works.
type StepOptions struct {
	Budget  time.Duration                 // longest time of a step; default [DefaultBudget]
	Breaker func(state string, err error) // told of each change, for example "link open"; err is the failure that opened it, nil once it is closed
}

// NewSteps returns Steps on rdb. What shares Steps shares their breakers.
func NewSteps(rdb redis.UniversalClient, o StepOptions) *Steps {
	budget := cmp.Or(o.Budget, DefaultBudget)
	return &Steps{
		rdb:     rdb,
		budget:  budget,
		over:    fmt.Errorf("%w of %v", ErrBudget, budget),
		direct:  keepsDeadlines(rdb),
		servers: newServers(rdb, o.Breaker),
		reload:  newReloader(rdb),
		prompt:  newPrompt(rdb),
	}
}

// keepsDeadlines says whether the client has ContextTimeoutEnabled. Without it go-redis heeds no deadline once a
// command is on its way (4 tries of 5 s each, by default).
func keepsDeadlines(rdb redis.UniversalClient) bool {
	switch c := rdb.(type) {
	case *redis.Client:
		return c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return c.Options().ContextTimeoutEnabled
	case *redis.Ring:
		return c.Options().ContextTimeoutEnabled
	}
	return false
}

// Write runs a script that may safely run twice: go-redis sends a command again when its reply is lost.
func (s *Steps) Write(ctx context.Context, script *redis.Script, keys []string, args ...any) *redis.Cmd {
	return s.run(ctx, true, s.rdb, script, keys, args)
}

// Erase runs a script that only frees memory: a server that takes no writes may still take it.
func (s *Steps) Erase(ctx context.Context, script *redis.Script, keys []string, args ...any) *redis.Cmd {
	return s.run(ctx, false, s.rdb, script, keys, args)
}

// Read runs a script that writes nothing.
func (s *Steps) Read(ctx context.Context, script *redis.Script, keys []string, args ...any) *redis.Cmd {
	return s.run(ctx, false, s.rdb, script, keys, args)
}

func (s *Steps) run(ctx context.Context, writes bool, c redis.Scripter, script *redis.Script, keys []string, args []any) *redis.Cmd {
	cmd, err := doTo(ctx, s, keys[0], writes, func(ctx context.Context) (*redis.Cmd, error) {
		cmd := s.send(ctx, c, script, keys, args)
		return cmd, cmd.Err()
	})
	if cmd == nil {
		cmd = redis.NewCmd(ctx)
	}
	if err != nil {
		cmd.SetErr(err)
	}
	return cmd
}

// send gives the server the script in full the first time, so that a fleet that starts together on a new server does
// not ask twice for each step; then by its hash, and in full again should the server have lost it.
func (s *Steps) send(ctx context.Context, c redis.Scripter, script *redis.Script, keys []string, args []any) *redis.Cmd {
	if _, ok := s.loaded.Load(script.Hash()); ok {
		return script.Run(ctx, c, keys, args...)
	}
	cmd := script.Eval(ctx, c, keys, args...)
	if cmd.Err() == nil {
		s.loaded.Store(script.Hash(), true)
	}
	return cmd
}

// Do runs one step that writes nothing. A step that outlives its budget goes on by itself, for as long as the
// client's options let it; its caller no longer waits.
func Do[T any](ctx context.Context, s *Steps, step func(ctx context.Context) (T, error)) (T, error) {
	return doAt(ctx, s, "", step)
}

// doAt is Do for a step on the server that has key; "" is any.
func doAt[T any](ctx context.Context, s *Steps, key string, step func(ctx context.Context) (T, error)) (T, error) {
	return doTo(ctx, s, key, false, step)
}

// doTo is doAt for a step that may write.
func doTo[T any](ctx context.Context, s *Steps, key string, writes bool, step func(ctx context.Context) (T, error)) (T, error) {
	server := s.servers.of(key)
	if !writes {
		return do(ctx, s, server.link, nil, step)
	}
	return do(ctx, s, server.link, server.writes, step)
}

func do[T any](ctx context.Context, s *Steps, link, writes *breaker, step func(ctx context.Context) (T, error)) (v T, err error) {
	leave, err := allow(link, writes)
	if err != nil {
		return v, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, s.budget, s.over)
	defer cancel()
	defer func() {
		trouble := classify(ctx, err)
		leave.tell(trouble, err)
		switch trouble {
		case none:
			s.servers.located.Store(true)
		case unreachable, unserved:
			s.reload.hint()
		}
	}()
	if s.direct {
		v, err = step(bounded)
	} else {
		v, err = recompute.Call(bounded, nil, step)
	}
	return v, because(bounded, err)
}

// because names the reason for which a step ended: go-redis only speaks of a timeout, and may do so a little before the
// context does.
func because(ctx context.Context, err error) error {
	if deadline, _ := ctx.Deadline(); err == nil || ctx.Err() == nil && time.Now().Before(deadline) {
		return err
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}
