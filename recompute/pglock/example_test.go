package pglock_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/pglock"
)

// One replica of many writes the report. Should it be paused past its lease, its late write changes nothing.
func ExampleNew() {
	ctx := context.Background()
	db, err := pgxpool.New(ctx, "postgres://localhost/billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	leases, err := pgxpool.New(ctx, "postgres://localhost/billing?pool_max_conns=10") // each lease keeps one
	if err != nil {
		fmt.Println(err)
		return
	}
	defer leases.Close()
	locker, err := pglock.New(leases, pglock.Options{Prefix: "reports"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := locker.Create(ctx); err != nil { // or once, where the schema is made
		fmt.Println(err)
		return
	}
	guard, err := recompute.NewGuard(locker, recompute.GuardOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = guard.Try(ctx, "2026-11", func(ctx context.Context, h *recompute.Held) error {
		fence, _ := h.Fence()
		_, err := db.Exec(ctx, "UPDATE reports SET content = $1, fencing_token = $2 WHERE id = $3 AND fencing_token < $2", "…", fence, "2026-11")
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
}
