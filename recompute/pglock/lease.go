package pglock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bellwether-cache/bellwether/recompute"
)

// channel is where releases are announced, by the numbers of their locks.
const channel = "bellwether_locks"

const (
	extendSQL = "SELECT set_config('idle_session_timeout', $1, false)"
	unlockSQL = "SELECT pg_advisory_unlock($1), pg_notify('" + channel + "', $1::bigint::text)"
	resetSQL  = "RESET idle_session_timeout"
)

type lease struct {
	locker *Locker
	lock   int64
	fence  int64
	life   context.Context // of extensions
	end    context.CancelFunc

	mu    sync.Mutex    // held during a step: a session takes one at a time
	conn  *pgxpool.Conn // guarded by mu; nil once the lease is over
	until time.Time     // guarded by mu: the server may end the session from then on
	over  *time.Timer   // fires expire then
}

func newLease(l *Locker, conn *pgxpool.Conn, lock, fence int64, until time.Time) *lease {
	h := &lease{locker: l, lock: lock, fence: fence, conn: conn, until: until}
	h.life, h.end = context.WithCancel(context.Background())
	h.mu.Lock() // the timer may be quick
	defer h.mu.Unlock()
	h.over = time.AfterFunc(time.Until(until), h.expire)
	return h
}

// expire gives the connection back of a lease that nobody has released or extended in time.
func (h *lease) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil && !time.Now().Before(h.until) {
		drop(h.take(), h.locker.budget)
	}
}

// Fence returns the number of the grant, greater than that of any grant of the key before it.
func (h *lease) Fence() int64 { return h.fence }

// Extend makes the lease last ttl from now. To give up an extension is to give up the session, and so the lease:
// it waits for the server until the lease ends, or for a budget after the end of ctx or the beginning of a Release.
func (h *lease) Extend(ctx context.Context, ttl time.Duration) error {
	idle, err := timeout(ttl)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn == nil {
		return recompute.ErrLost
	}
	step, cancel := context.WithDeadline(h.life, h.until)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(h.locker.budget, cancel) })()
	asked := time.Now()
	_, err = h.conn.Exec(step, extendSQL, idle)
	switch {
	case err == nil:
		h.until = asked.Add(ttl)
		h.over.Reset(time.Until(h.until))
		return nil
	case step.Err() == nil && !h.conn.Conn().IsClosed(): // refused, but the session is there
		return fmt.Errorf("pglock: extend: %w", err)
	}
	drop(h.take(), h.locker.budget)
	return fmt.Errorf("%w: %w", recompute.ErrLost, err)
}

// Release ends the lease and wakes those who wait for its key. It runs on a context of its own, so that it works
// when the work's has ended. An error other than [recompute.ErrLost] means that the session was ended without an answer: the
// lease ends with it, or by itself.
func (h *lease) Release(ctx context.Context) error {
	hurry := time.AfterFunc(h.locker.budget, h.end)
	h.mu.Lock()
	defer h.mu.Unlock()
	hurry.Stop()
	if h.conn == nil {
		return recompute.ErrLost
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), h.locker.budget, ErrBudget)
	defer cancel()
	conn := h.take()
	ours, err := unlock(ctx, conn, h.lock)
	switch {
	case err == nil && ours:
		conn.Release()
		return nil
	case err != nil && (ctx.Err() != nil || !conn.Conn().IsClosed()):
		drop(conn, h.locker.budget)
		return failed(ctx, "release", err)
	}
	drop(conn, h.locker.budget) // the server had ended the session
	return recompute.ErrLost
}

// take ends the lease for its holder, and hands over what it was.
func (h *lease) take() *pgxpool.Conn {
	conn := h.conn
	h.conn = nil
	h.over.Stop()
	h.end()
	return conn
}

// unlock frees the lock, tells who waits for it, and makes the session one that can be used for anything again.
func unlock(ctx context.Context, conn *pgxpool.Conn, lock int64) (ours bool, err error) {
	var b pgx.Batch
	b.Queue(unlockSQL, lock).QueryRow(func(row pgx.Row) error { return row.Scan(&ours, nil) })
	b.Queue(resetSQL)
	return ours, conn.SendBatch(ctx, &b).Close()
}
