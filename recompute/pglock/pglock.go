// Package pglock grants leases from a PostgreSQL server.
//
// A lease is a session-level advisory lock on a connection of its own, and the server ends that session
// (idle_session_timeout) once it has heard nothing for the lease's ttl. So a lease ends with its holder: at once when the process dies or closes
// the connection, after ttl when it is paused or cut off, and with the server itself, standby or not. There is
// nothing to take back or to clear away, and no table: only a sequence that numbers the grants.
//
// The price is a connection for each lease that is held, straight to the server: a pooler between is refused. For
// jobs that is little; for a cache with thousands of keys take redislock.
//
// Like any lease it saves work and does not guarantee exclusion: a paused holder doesn't know yet that its lease
// has ended. Its fence orders what it writes. Numbers and rows of one database share one log, so a standby (by
// physical replication; logical leaves sequences out) that takes over has the numbers of all rows that it has.
//
// It takes PostgreSQL 14 or newer, which has that timeout. A lease whose key hashes to the number of another's (64 bits), or of
// an advisory lock that somebody else takes in the same database, is refused while that is held.
package pglock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bellwether-cache/bellwether/recompute"
)

// ErrBudget says that PostgreSQL, or the pool, did not answer in time.
var ErrBudget = errors.New("pglock: no answer within the budget of a step")

// DefaultBudget is how long a step may take if [Options].Budget is zero. It has room for a new connection.
const DefaultBudget = 2 * time.Second

// Options configures a [Locker]. The zero value works.
type Options struct {
	Prefix string        // tells keys of services apart that share a database; default "bellwether"
	Schema string        // where the sequence of the fences is; default "public"
	Budget time.Duration // longest that Acquire and Release may take; default [DefaultBudget]
}

// Locker grants leases from one PostgreSQL database: advisory locks know no other.
type Locker struct {
	pool   *pgxpool.Pool
	prefix string
	fences string // the sequence, schema and quotes included
	budget time.Duration
	ear    *ear
}

// New returns a Locker that takes a connection of pool for each lease, and one for all who wait. Give it a pool that
// nothing else uses, with MaxConns above the number of leases held at once: work that waits for a connection while
// leases have them all would wait for itself. It sends nothing yet; [Locker.Create] has to run once for each database.
func New(pool *pgxpool.Pool, o Options) (*Locker, error) {
	switch {
	case pool == nil:
		return nil, errors.New("pglock: the pool is nil")
	case o.Budget != 0 && o.Budget < time.Millisecond:
		return nil, fmt.Errorf("pglock: Options.Budget is %v, must be at least 1ms (0: %v); a bare number means nanoseconds", o.Budget, DefaultBudget)
	}
	budget := cmp.Or(o.Budget, DefaultBudget)
	return &Locker{
		pool:   pool,
		prefix: cmp.Or(o.Prefix, "bellwether"),
		fences: pgx.Identifier{cmp.Or(o.Schema, "public"), "bellwether_fence"}.Sanitize(),
		budget: budget,
		ear:    &ear{pool: pool, budget: budget},
	}, nil
}

// Create creates the sequence of the fences if it isn't there. That takes the right to create in the schema; to use
// a Locker, or to call Create again, then takes none but USAGE on the sequence.
func (l *Locker) Create(ctx context.Context) error {
	var there bool
	err := l.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", l.fences).Scan(&there)
	if err == nil && !there {
		err = l.create(ctx)
	}
	if err != nil {
		return fmt.Errorf("pglock: create: %w", err)
	}
	return nil
}

func (l *Locker) create(ctx context.Context) error {
	return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		// IF NOT EXISTS alone can fail when two create at once.
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", number(l.fences)); err != nil {
			return err
		}
		// A session that cached numbers would give them out later, and they would no longer grow.
		_, err := tx.Exec(ctx, "CREATE SEQUENCE IF NOT EXISTS "+l.fences+" AS bigint CACHE 1 NO CYCLE")
		return err
	})
}

// acquireSQL locks, then bounds the session, then numbers the grant; who doesn't get the lock changes nothing. Through
// a pooler the session seems to be another's, and would keep the lock whatever becomes of our connection.
const acquireSQL = `SELECT pg_backend_pid() = $4, CASE WHEN pg_backend_pid() = $4 THEN
	CASE WHEN pg_try_advisory_lock($1) THEN
		CASE WHEN set_config('idle_session_timeout', $2, false) <> '' THEN nextval($3::text::regclass) END
	END
END`

// Acquire asks once for the lease of key. It returns [recompute.ErrHeld] when another holder has it, and can't say
// for how long. The lease has a fence, see [recompute.Fenced]. One that fails ends its session, so that it leaves no lease behind.
func (l *Locker) Acquire(ctx context.Context, key string, ttl time.Duration) (recompute.Lease, error) {
	idle, err := timeout(ttl)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, l.budget, ErrBudget)
	defer cancel()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, failed(ctx, "acquire: a connection", err)
	}
	since, lock := time.Now(), l.lock(key)
	var direct bool
	var fence *int64
	err = conn.QueryRow(ctx, acquireSQL, lock, idle, l.fences, int32(conn.Conn().PgConn().PID())).Scan(&direct, &fence)
	if err == nil && !direct {
		err = errors.New("a pooler is between this process and PostgreSQL, and a lease needs a session of its own")
	}
	switch {
	case err != nil || ctx.Err() != nil:
		drop(conn, l.budget)
		return nil, failed(ctx, "acquire", err)
	case fence == nil:
		conn.Release()
		return nil, recompute.ErrHeld
	}
	return newLease(l, conn, lock, *fence, since.Add(ttl)), nil
}

// lock is the advisory lock of key.
func (l *Locker) lock(key string) int64 { return number(l.fences, l.prefix, key) }

// number is an advisory lock for names: 64 bits of a hash.
func number(names ...string) int64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", names))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// drop ends the session of conn, and with it whatever lease it has. Should the server not hear of it, it ends the
// session when it has been idle for the lease's ttl.
func drop(conn *pgxpool.Conn, budget time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), budget)
	defer cancel()
	session := conn.Hijack()
	// Nothing can be done about errors. After a query that was cut short pgx waits up to 15 s for its answer and hangs
	// up then; the lease is not to wait for that.
	_ = session.Close(ctx)
	_ = session.PgConn().Conn().Close()
}

// timeout is ttl as the server takes it: in milliseconds, of which 0 would mean for ever.
func timeout(ttl time.Duration) (string, error) {
	const longest = math.MaxInt32 * time.Millisecond
	if ttl < time.Millisecond || ttl > longest {
		return "", fmt.Errorf("pglock: ttl of a lease is %v, must be at least 1ms and at most %v", ttl, longest)
	}
	return strconv.FormatInt(int64((ttl+time.Millisecond-1)/time.Millisecond), 10), nil
}

// failed says what failed, and why: a context that has ended counts more than what it broke.
func failed(ctx context.Context, step string, err error) error {
	if ctx.Err() == nil {
		return fmt.Errorf("pglock: %s: %w", step, err)
	}
	if context.Cause(ctx) == ErrBudget {
		return fmt.Errorf("pglock: %s: %w", step, ErrBudget)
	}
	return fmt.Errorf("pglock: %s: %w", step, ctx.Err())
}
