package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// promptly is how long a step may keep the goroutine of its caller, and so how late it may notice that the caller left.
const promptly = 50 * time.Millisecond

// sulk is how long no step is taken so after one that failed or was slow.
const sulk = 250 * time.Millisecond

// errNotPrompt says that a step had better not be taken on the goroutine of its caller.
var errNotPrompt = errors.New("redislock: Redis is not prompt")

// prompt is a view of a client that keeps to deadlines and does not try again, whatever the client's options.
type prompt struct {
	client *redis.Client
	slow   atomic.Int64 // since when it is not asked, in Unix ns
	closed atomic.Bool  // since it refused a connection
	knocks atomic.Int64 // when a connection was refused last, in Unix ns
}

// ErrConnectionRefused says that the server refuses connections.
var ErrConnectionRefused = errors.New("redislock: the connection is refused")

func newPrompt(rdb redis.UniversalClient) *prompt {
	client, ok := rdb.(*redis.Client)
	if !ok || client == nil {
		return nil
	}
	p := new(prompt)
	client.AddHook(doorbell{p})
	p.client = client.WithTimeout(promptly) // same connections, options of its own
	p.client.Options().ContextTimeoutEnabled = true
	p.client.Options().MaxRetries = 0
	return p
}

// doorbell is a hook that hears of refused connections. By itself go-redis dials again and again before it tells.
type doorbell struct{ *prompt }

// DialHook notes what it hears.
func (d doorbell) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if refuses(err) {
			d.knocks.Store(time.Now().UnixNano())
		}
		return conn, err
	}
}

// ProcessHook changes nothing.
func (doorbell) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook changes nothing.
func (doorbell) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Promptly runs one step that writes nothing on the caller's own goroutine, for 50 ms at most. It fails at once where
// that is not to be had: with a cluster, and for a quarter of a second after a step that failed or was slow.
func Promptly[T any](ctx context.Context, s *Steps, step func(context.Context, *redis.Client) (T, error)) (v T, err error) {
	p := s.prompt
	switch sulks := p != nil && time.Now().UnixNano()-p.slow.Load() < int64(sulk); {
	case p == nil:
		return v, errNotPrompt
	case p.closed.Load() && sulks:
		return v, ErrConnectionRefused
	case sulks, !p.closed.Load() && !s.servers.any.link.healthy():
		return v, errNotPrompt
	}
	began := time.Now().UnixNano()
	bounded, cancel := context.WithTimeout(ctx, min(promptly, s.budget))
	defer cancel()
	v, err = step(bounded, p.client)
	if classify(ctx, err) == none {
		p.closed.Store(false)
		return v, err
	}
	p.slow.Store(time.Now().UnixNano())
	refused := refuses(err) || p.knocks.Load() >= began
	p.closed.Store(refused)
	if refused {
		err = fmt.Errorf("%w: %w", ErrConnectionRefused, err)
	}
	return v, err
}

// refuses says whether an error means that nobody listens at the server's address.
func refuses(err error) bool {
	dial := (*net.OpError)(nil)
	return errors.As(err, &dial) && dial.Op == "dial" && !dial.Timeout()
}

// PromptScript is Promptly for a script that writes nothing. It fails at once until the server has been given the script.
func PromptScript(ctx context.Context, s *Steps, script *redis.Script, keys []string, args ...any) ([]any, error) {
	if _, ok := s.loaded.Load(script.Hash()); !ok {
		return nil, errNotPrompt
	}
	return Promptly(ctx, s, func(ctx context.Context, c *redis.Client) ([]any, error) {
		return script.EvalSha(ctx, c, keys, args...).Slice()
	})
}
