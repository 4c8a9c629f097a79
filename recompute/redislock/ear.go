package redislock

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

// linger is how long an ear goes on listening when nobody waits any more: contention comes in waves, and subscribing takes time.
const linger = time.Minute

// grace is the time that the process whose turn it is has for its question, before the second asks: it may have died while it waited.
const grace = 100 * time.Millisecond

// ear hears releases for those who wait for leases.
type ear struct {
	hub     *Hub
	tasks   *recompute.Tasks
	name    string // of this process among those that wait
	waiters *recompute.Waiters
	wake    func(name string) (waits bool) // one of them

	mu      sync.Mutex
	waiting int
	deaf    context.CancelFunc     // nil: not listening
	leave   *time.Timer            // stops the listening once nobody has waited for a while
	second  map[string]*time.Timer // of leases for which this process is second: it asks then
}

// newEar returns nil where nothing can be heard: the servers of a ring share no channel.
func newEar(steps *Steps, channel string) *ear {
	if _, ring := steps.rdb.(*redis.Ring); ring || channel == "" {
		return nil
	}
	waiters := new(recompute.Waiters)
	return &ear{hub: NewHub(steps, channel), name: rand.Text(), tasks: recompute.NewTasks(), waiters: waiters, wake: waiters.Wake}
}

// wait registers before it listens, and what was missed until the hub can hear is made good by Up.
func (e *ear) wait(key string) (woken <-chan struct{}, stop func()) {
	woken, leave := e.waiters.Wait(key)
	e.enter()
	return woken, sync.OnceFunc(func() {
		unused := len(woken) > 0
		leave()
		if unused && len(e.waiters.Since(key)) == 0 {
			e.handOn(key)
		}
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
	first, second, _ := strings.Cut(m.Body, ",")
	if m.Kind == Released {
		e.moved(m.Name)
	}
	switch {
	case m.Kind == Up:
		e.waiters.WakeAll()
	case m.Kind == Released && (first == "" || first == e.name):
		if !e.wake(m.Name) && first != "" {
			e.handOn(m.Name)
		}
	case m.Kind == Released && second == e.name:
		e.stand(m.Name)
	}
}

// stand has the second ask unless another release is heard before: then the first, or whoever came, has had the lease.
func (e *ear) stand(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.second == nil {
		e.second = make(map[string]*time.Timer)
	}
	e.second[name] = time.AfterFunc(grace, func() {
		e.moved(name)
		e.wake(name)
	})
}

func (e *ear) moved(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.second[name]; t != nil {
		t.Stop()
		delete(e.second, name)
	}
}

// handOn gives up the turn of this process, in which nobody waits any more, to all others.
func (e *ear) handOn(name string) {
	_ = e.tasks.Go(func(ctx context.Context) {
		_, _ = doAt(ctx, e.hub.steps, e.hub.channel, func(ctx context.Context) (int64, error) { // who is not told asks by itself
			return e.hub.steps.rdb.Publish(ctx, e.hub.channel, Message{Kind: Released, Name: name}.encode()).Result()
		})
	})
}

// queued are the arguments of acquire.lua that say who waits.
func (e *ear) queued(key string) []any {
	if e == nil {
		return nil
	}
	came := e.waiters.Since(key)
	switch len(came) {
	case 0:
		return nil
	case 1:
		return []any{e.name, time.Since(came[0]).Microseconds(), ""}
	}
	return []any{e.name, time.Since(came[0]).Microseconds(), time.Since(came[1]).Microseconds()}
}
