package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// reports is the table that is to be protected. Each row keeps the highest fence that has written it.
type reports struct{ pool *pgxpool.Pool }

func (r reports) create(ctx context.Context, id string) error {
	_, err := r.pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS bellwether_example_reports (
		id text PRIMARY KEY, content text NOT NULL, fencing_token bigint NOT NULL)`)
	if err == nil {
		_, err = r.pool.Exec(ctx, `INSERT INTO bellwether_example_reports VALUES ($1, 'draft', 0)
			ON CONFLICT (id) DO UPDATE SET content = 'draft', fencing_token = 0`, id)
	}
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return nil
}

// save writes a report unless somebody with a later lease has, and says whether it did.
func (r reports) save(ctx context.Context, id, content string, fence int64) (bool, error) {
	tag, err := r.pool.Exec(ctx, `UPDATE bellwether_example_reports SET content = $1, fencing_token = $2
		WHERE id = $3 AND fencing_token < $2`, content, fence, id)
	if err != nil {
		return false, fmt.Errorf("save: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// saveAnyway is what not to do: it trusts the lease.
func (r reports) saveAnyway(ctx context.Context, id, content string, fence int64) (bool, error) {
	tag, err := r.pool.Exec(ctx, "UPDATE bellwether_example_reports SET content = $1, fencing_token = $2 WHERE id = $3", content, fence, id)
	if err != nil {
		return false, fmt.Errorf("save: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

func (r reports) content(ctx context.Context, id string) (content string, err error) {
	err = r.pool.QueryRow(ctx, "SELECT content FROM bellwether_example_reports WHERE id = $1", id).Scan(&content)
	return content, err
}

func (r reports) drop(ctx context.Context) error {
	_, err := r.pool.Exec(ctx, "DROP TABLE bellwether_example_reports")
	return err
}
