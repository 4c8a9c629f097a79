package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/cache"
)

// plain is what is usually written by hand: ask Redis, render what is missing, store it. Nothing keeps two callers from the same
// work, nor an old page from being stored after a delete.
type plain struct {
	rdb    redis.UniversalClient
	prefix string
	ttl    time.Duration
	origin *Origin
}

func (p plain) lookup(ctx context.Context, path string) (answer, error) {
	a, err := p.held(ctx, path)
	if !errors.Is(err, cache.ErrNotFound) {
		return a, err
	}
	page, err := p.origin.Render(ctx, path)
	if err != nil {
		return answer{}, err
	}
	value := page.Rendering + "\n" + string(page.HTML)
	if err := p.rdb.Set(ctx, p.prefix+path, value, p.ttl).Err(); err != nil {
		return answer{}, fmt.Errorf("site: %w", err)
	}
	return answer{page: page, outcome: cache.Computed.String()}, nil
}

func (p plain) held(ctx context.Context, path string) (answer, error) {
	value, err := p.rdb.Get(ctx, p.prefix+path).Bytes()
	if errors.Is(err, redis.Nil) {
		return answer{}, cache.ErrNotFound
	}
	if err != nil {
		return answer{}, fmt.Errorf("site: %w", err)
	}
	rendering, html, _ := bytes.Cut(value, []byte("\n"))
	return answer{page: Page{HTML: html, Rendering: string(rendering)}, outcome: cache.Hit.String()}, nil
}

func (p plain) remove(ctx context.Context, path string) error {
	return p.rdb.Del(ctx, p.prefix+path).Err()
}
