package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

// linger is how long an ear goes on listening when nobody waits any more: contention comes in waves, and subscribing takes time.
const linger = time.Minute

// ear hears releases for those who wait for leases.
type ear struct {
	hub     *Hub
	tasks   *recompute.Tasks
	waiters recompute.Waiters

	mu      sync.Mutex
	waiting int
	deaf    context.CancelFunc // nil: not listening
	leave   *time.Timer        // stops the listening once nobody has waited for a while
}

// newEar returns nil where nothing can be heard: the servers of a ring share no channel.
func newEar(steps *Steps, channel string) *ear {
	if _, ring := steps.rdb.(*redis.Ring); ring || channel == "" {
		return nil
	}
	return &ear{hub: NewHub(steps, channel), tasks: recompute.NewTasks()}
}

// wait registers before it listens, and what was missed until the hub can hear is made good by Up.
func (e *ear) wait(key string) (woken <-chan struct{}, stop func()) {
	woken, leave := e.waiters.Wait(key)
	e.enter()
	return woken, sync.OnceFunc(func() {
		leave()
		e.exit()
	})
}

func (e *ear) enter() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting++
	if e.leave != nil {
		e.leave.Stop()
	}
	if e.deaf != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.deaf = cancel
	_ = e.tasks.Go(func(life context.Context) { // once closed, nobody is woken
		defer context.AfterFunc(life, cancel)()
		e.hub.Listen(ctx, e.hear)
	})
}

func (e *ear) exit() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting--; e.waiting == 0 {
		e.leave = time.AfterFunc(linger, e.rest)
	}
}

func (e *ear) rest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == 0 && e.deaf != nil {
		e.deaf()
		e.deaf = nil
	}
}

func (e *ear) hear(m Message, _ error) {
	switch m.Kind {
	case Released:
		e.waiters.Wake(m.Name)
	case Up:
		e.waiters.WakeAll()
	}
}
