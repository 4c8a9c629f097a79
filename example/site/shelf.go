package site

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// shelf is a way to keep pages.
type shelf interface {
	lookup(ctx context.Context, path string) (answer, error) // renders what it hasn't
	held(ctx context.Context, path string) (answer, error)   // never renders; cache.ErrNotFound
	remove(ctx context.Context, path string) error
}

type answer struct {
	page    Page
	outcome string
	age     time.Duration
}

// OpenPages opens the cache of pages that all replicas of one prefix share. failed is called whenever Redis fails or takes too long,
// which the cache's callers don't notice. The caller closes the cache.
func OpenPages(
	rdb redis.UniversalClient, prefix string, lease time.Duration, policy stale.Policy, failed func(error),
) (*cache.Cache[Page], error) {
	store := redisstore.New(rdb, redisstore.Options{Prefix: prefix})
	return cache.New[Page](store, cache.Options[Page]{
		Policy: policy,
		Lease:  lease,
		Clone:  func(p Page) Page { return p }, // nobody changes a page
		Trace: cache.Trace{
			Lease:       recompute.Trace{Failed: failed},
			StoreFailed: func(_ string, err error) { failed(err) },
		},
	})
}

// protected keeps pages in a Bellwether cache.
type protected struct {
	pages  *cache.Cache[Page]
	origin *Origin
}

func (p protected) lookup(ctx context.Context, path string) (answer, error) {
	return answered(p.pages.Lookup(ctx, path, func(ctx context.Context) (Page, error) {
		return p.origin.Render(ctx, path)
	}))
}

func (p protected) held(ctx context.Context, path string) (answer, error) {
	return answered(p.pages.Get(ctx, path))
}

func (p protected) remove(ctx context.Context, path string) error { return p.pages.Delete(ctx, path) }

func answered(r cache.Result[Page], err error) (answer, error) {
	return answer{page: r.Value, outcome: r.Outcome.String(), age: r.Age}, err
}
