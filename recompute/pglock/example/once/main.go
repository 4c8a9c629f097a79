// Command once shows a retry that a lock can't make harmless, and an idempotency key that does, on a real PostgreSQL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgserver"
)

func main() {
	serverMain()
	url := flag.String("postgres", "", "`URL` of a database; without it a server is started for the time of the example")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "once:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, out io.Writer) error {
	url, stop, err := pgserver.Use(url)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	for _, key := range []string{"", "order 4711"} {
		if _, err := retry(ctx, url, key, out); err != nil {
			return err
		}
	}
	return nil
}

// result is what is left when the client has its answer.
type result struct {
	answer  receipt
	balance int64
}

// retry charges 25.00, by a server that dies before it has answered, and then, as a client must, by another.
func retry(ctx context.Context, url, key string, out io.Writer) (r result, err error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return r, err
	}
	defer pool.Close()
	a := accounts{pool}
	if err := errors.Join(a.drop(ctx), a.create(ctx)); err != nil {
		return r, err
	}
	defer func() { _ = a.drop(context.WithoutCancel(ctx)) }()
	fmt.Fprintln(out, map[bool]string{true: "with a lease only", false: "with an idempotency key"}[key == ""])

	order := request{URL: url, Charge: charge{Account: "alice", Cents: 2500}, Key: key, Crash: true}
	fmt.Fprintln(out, "  alice has 100.00, and is charged 25.00")
	if _, err = ask(ctx, order); !errors.Is(err, errNoAnswer) {
		return r, fmt.Errorf("once: the server should have died: %w", err)
	}
	fmt.Fprintln(out, "  the server is killed before it answers; the client can't know whether it has charged, and tries again")
	order.Crash = false
	if r.answer, err = ask(ctx, order); err != nil {
		return r, err
	}
	if r.balance, err = a.balance(ctx, "alice"); err != nil {
		return r, err
	}
	fmt.Fprintf(out, "  the answer (recorded before: %v) says that she has %s; she has %s\n", r.answer.Again, money(r.answer.Balance), money(r.balance))
	return r, nil
}

func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }
