package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errOther says that an idempotency key was used before, for another charge.
var errOther = errors.New("once: the key was used for another charge")

// charge is what a client asks for.
type charge struct {
	Account string
	Cents   int64
}

// receipt is what it gets.
type receipt struct {
	Balance int64
	Again   bool // it is what an earlier try was answered, or would have been
}

// accounts are the tables: what is charged, and what was answered to whom.
type accounts struct{ pool *pgxpool.Pool }

func (a accounts) create(ctx context.Context) error {
	_, err := a.pool.Exec(ctx, `
		CREATE TABLE bellwether_example_accounts (id text PRIMARY KEY, cents bigint NOT NULL);
		CREATE TABLE bellwether_example_answers (
			key     text PRIMARY KEY,   -- the client's, one for each intention, the same on each try
			account text NOT NULL,      -- the request, so that a key can't be used for another
			cents   bigint NOT NULL,
			balance bigint,             -- the answer
			at      timestamptz NOT NULL DEFAULT now()); -- to delete them once no client tries any more
		INSERT INTO bellwether_example_accounts VALUES ('alice', 10000)`)
	return err
}

// chargeOnce charges, however often it is called with key. The key, the effect and the answer are one transaction: there
// is none without the others, whenever the process dies. Of two tries at once the second waits at the first's key.
func (a accounts) chargeOnce(ctx context.Context, key string, c charge) (r receipt, err error) {
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO bellwether_example_answers (key, account, cents) VALUES ($1, $2, $3)
			ON CONFLICT (key) DO NOTHING`, key, c.Account, c.Cents)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			r, err = answered(ctx, tx, key, c)
			return err
		}
		if r.Balance, err = debit(ctx, tx, c); err != nil {
			return err // and the key is free again: what failed has had no effect
		}
		_, err = tx.Exec(ctx, "UPDATE bellwether_example_answers SET balance = $1 WHERE key = $2", r.Balance, key)
		return err
	})
	return r, err
}

// answered returns what an earlier try was answered.
func answered(ctx context.Context, tx pgx.Tx, key string, c charge) (receipt, error) {
	r := receipt{Again: true}
	var was charge
	err := tx.QueryRow(ctx, "SELECT account, cents, balance FROM bellwether_example_answers WHERE key = $1", key).
		Scan(&was.Account, &was.Cents, &r.Balance)
	if err == nil && was != c {
		err = fmt.Errorf("%w: %+v", errOther, was)
	}
	return r, err
}

func debit(ctx context.Context, tx pgx.Tx, c charge) (balance int64, err error) {
	err = tx.QueryRow(ctx, `UPDATE bellwether_example_accounts SET cents = cents - $1
		WHERE id = $2 AND cents >= $1 RETURNING cents`, c.Cents, c.Account).Scan(&balance)
	if err != nil {
		return 0, fmt.Errorf("debit: %w", err)
	}
	return balance, nil
}

// chargeEachTime is what not to do: it has no way to know that it was done before.
func (a accounts) chargeEachTime(ctx context.Context, c charge) (r receipt, err error) {
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) (err error) {
		r.Balance, err = debit(ctx, tx, c)
		return err
	})
	return r, err
}

func (a accounts) balance(ctx context.Context, id string) (cents int64, err error) {
	err = a.pool.QueryRow(ctx, "SELECT cents FROM bellwether_example_accounts WHERE id = $1", id).Scan(&cents)
	return cents, err
}

func (a accounts) drop(ctx context.Context) error {
	_, err := a.pool.Exec(ctx, "DROP TABLE IF EXISTS bellwether_example_accounts, bellwether_example_answers")
	return err
}
