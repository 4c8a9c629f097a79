package pglock

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bellwether-cache/bellwether/recompute"
)

// silence is how long the connection that listens may be quiet before it is asked whether it is still there.
const silence = 3 * time.Second

// again are the pauses between connections that listen.
var again = recompute.Backoff{Min: 50 * time.Millisecond, Max: time.Second, Jitter: 0.5}

// ear hears releases, for all who wait, over one connection that it has as long as anybody does.
type ear struct {
	pool    *pgxpool.Pool
	budget  time.Duration
	waiters recompute.Waiters // by lock, as releases name it

	mu      sync.Mutex
	waiting int
	deaf    context.CancelFunc // ends the listening; nil when nobody waits
}

// Wake tells when to ask for key again, until ctx ends or stop is called: when its lease was released, and whenever
// that may have been missed. Ask after it returns. A lease that ends by itself wakes nobody, so ask now and then too.
func (l *Locker) Wake(ctx context.Context, key string) (woken <-chan struct{}, stop func()) {
	woken, unqueue := l.ear.waiters.Wait(strconv.FormatInt(l.lock(key), 10))
	l.ear.enter()
	leave := sync.OnceFunc(func() {
		unqueue()
		l.ear.leave()
	})
	detach := context.AfterFunc(ctx, leave)
	return woken, func() {
		detach()
		leave()
	}
}

func (e *ear) enter() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting++; e.waiting > 1 {
		return
	}
	var ctx context.Context
	ctx, e.deaf = context.WithCancel(context.Background())
	var uncounted *recompute.Tasks // ends with its last waiter
	_ = uncounted.Go(func(context.Context) { e.listen(ctx) })
}

func (e *ear) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting--; e.waiting == 0 {
		e.deaf()
	}
}

// listen hears until ctx ends, over one connection after the other.
func (e *ear) listen(ctx context.Context) {
	for ctx.Err() == nil {
		for pause := range again.Pauses() {
			heard := e.hear(ctx)
			if !recompute.Pause(ctx, pause) {
				return
			}
			if heard {
				break // it worked for a while: begin with short pauses again
			}
		}
	}
}

// hear listens over one connection until it fails, and says whether it could.
func (e *ear) hear(ctx context.Context) bool {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return false
	}
	defer e.dismiss(conn)
	if e.say(ctx, conn, "LISTEN "+channel) != nil {
		return false
	}
	e.waiters.WakeAll() // of what was released until now nothing was heard
	for e.next(ctx, conn) == nil {
	}
	return true
}

// next waits for one release, or makes sure that it could be heard.
func (e *ear) next(ctx context.Context, conn *pgxpool.Conn) error {
	quiet, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	n, err := conn.Conn().WaitForNotification(quiet)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return e.say(ctx, conn, "SELECT")
	case err != nil:
		return err
	}
	e.waiters.Wake(n.Payload)
	return nil
}

func (e *ear) say(ctx context.Context, conn *pgxpool.Conn, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, e.budget)
	defer cancel()
	_, err := conn.Exec(ctx, sql)
	return err
}

// dismiss gives conn back to the pool as it was, or ends it.
func (e *ear) dismiss(conn *pgxpool.Conn) {
	if e.say(context.Background(), conn, "UNLISTEN "+channel) == nil {
		conn.Release()
		return
	}
	drop(conn, e.budget)
}
