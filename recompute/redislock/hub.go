package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

// Hub hears what other processes announce on one channel, over one subscription however many listen.
//
// Delivery is at most once: a message is lost when the connection is. The hub says when it can hear ([Up]) and when
// it no longer can ([Down]); after Up a listener must look at whatever it waits for, since it may have missed it.
type Hub struct {
	steps   *Steps
	channel string
	silence time.Duration

	turn  chan struct{} // held by the listener that runs the subscription
	doubt bool          // guarded by turn: the last session heard no echo; the next is up only when it hears one

	mu        sync.Mutex
	up        bool
	listeners map[*listener]struct{}
}

type listener struct{ tell func(Message, error) }

const (
	// silence is how long a subscription may be quiet before the hub asks itself whether it can still hear.
	// go-redis would not notice a half-open connection by itself.
	silence = 3 * time.Second
	// echo is how long the hub then waits for its own voice.
	echo = time.Second
)

// NewHub returns a Hub for channel. It subscribes when somebody listens.
func NewHub(steps *Steps, channel string) *Hub {
	return &Hub{
		steps: steps, channel: channel, silence: silence,
		turn: make(chan struct{}, 1), listeners: make(map[*listener]struct{}),
	}
}

// Channel returns the channel that the hub listens to.
func (h *Hub) Channel() string { return h.channel }

// Listen calls tell with each message until ctx ends. Down comes with the error that ended the hearing, for example
// that the user may not subscribe, or may not publish. tell must be quick: everybody waits for it.
func (h *Hub) Listen(ctx context.Context, tell func(Message, error)) {
	l := &listener{tell: tell}
	h.mu.Lock()
	h.listeners[l] = struct{}{}
	if h.up {
		tell(Message{Kind: Up}, nil)
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.listeners, l)
		h.mu.Unlock()
	}()

	// One listener runs the subscription for all. When it leaves, the next takes over with a new one.
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
		h.run(ctx)
	case <-ctx.Done():
	}
}

var resubscribe = recompute.Backoff{Min: 50 * time.Millisecond, Max: time.Second, Jitter: 0.5}

func (h *Hub) run(ctx context.Context) {
	for ctx.Err() == nil {
		for pause := range resubscribe.Pauses() {
			s := session{Hub: h, doubt: h.doubt}
			s, err := recompute.Call(ctx, nil, s.run) // go-redis heeds no context while it connects
			h.broadcast(context.Background(), Message{Kind: Down}, err)
			if ctx.Err() == nil {
				h.steps.reload.hint() // the channel's server may be another by now
			}
			if !recompute.Pause(ctx, pause) {
				return
			}
			if h.doubt = s.doubt; s.heard {
				break // it worked for a while: begin with short pauses again
			}
		}
	}
}

// session is one subscription, from its beginning until something fails.
type session struct {
	*Hub
	heard bool // it was up
	doubt bool // as the hub's, after this session
}

// run subscribes and hears, and tells nobody of what comes after ctx has ended: by then another session may be under way.
func (s session) run(ctx context.Context) (session, error) {
	sub := s.steps.rdb.Subscribe(ctx, s.channel)
	defer func() { _ = sub.Close() }()
	defer context.AfterFunc(ctx, func() { _ = sub.Close() })() // a receive heeds no context

	word := Message{Kind: hello, Name: rand.Text()}
	wait, asked := s.silence, false
	up := func() {
		s.heard = true
		s.broadcast(ctx, Message{Kind: Up}, nil)
	}
	for {
		got, err := sub.ReceiveTimeout(ctx, wait)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			if s.doubt = true; asked {
				return s, fmt.Errorf("redislock: hub: no echo within %v", echo)
			}
			if err := s.ask(ctx, word); err != nil {
				return s, err
			}
			wait, asked = echo, true
			continue
		}
		if err != nil {
			return s, fmt.Errorf("redislock: hub: %w", err)
		}
		wait, asked = s.silence, false
		switch got := got.(type) {
		case *redis.Subscription:
			if !s.doubt {
				up()
				continue
			}
			if err := s.ask(ctx, word); err != nil {
				return s, err
			}
			wait, asked = echo, true
		case *redis.Message:
			switch m, ok := decode(got.Payload); {
			case !ok || m.Kind == Up || m.Kind == Down:
			case m == word:
				if s.doubt = false; !s.heard {
					up()
				}
			case m.Kind != hello:
				s.broadcast(ctx, m, nil)
			}
		}
	}
}

// ask says a word on the channel, by another connection: the echo proves that this process may publish, and that
// the subscription is alive and on the server that commands go to.
func (h *Hub) ask(ctx context.Context, word Message) error {
	_, err := doAt(ctx, h.steps, h.channel, func(ctx context.Context) (int64, error) {
		return h.steps.rdb.Publish(ctx, h.channel, word.encode()).Result()
	})
	if err != nil {
		return fmt.Errorf("redislock: hub: publish: %w", err)
	}
	return nil
}

func (h *Hub) broadcast(ctx context.Context, m Message, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	switch m.Kind {
	case Up:
		h.up = true
	case Down:
		h.up = false
	}
	for l := range h.listeners {
		l.tell(m, err)
	}
}
