package site

import (
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// Short lets a page run out all the time, so that one can watch.
var Short = stale.Policy{
	Fresh:           500 * time.Millisecond,
	WhileRevalidate: time.Minute,
}

const (
	largest  = 4 << 20     // bytes of a page
	cooldown = time.Second // after an answer that is an error
	budget   = time.Second // of a step on Redis: readers, replicas and by default Redis too share one machine here
)

// open opens the cache of responses, which all replicas share. failed is called whenever Redis fails or takes too long, which
// readers don't notice. The caller closes the cache.
func open(rdb redis.UniversalClient, o Options, failed func(error)) (*cache.Cache[middleware.Response], error) {
	store := redisstore.New(rdb, redisstore.Options{Prefix: o.Prefix + "http", Budget: budget})
	return cache.New(store, cache.Options[middleware.Response]{
		Policy: stale.Policy{Fresh: plainTTL, Cooldown: cooldown}, // how long each lasts is for the middleware to say
		Lease:  o.Lease,
		Trace: cache.Trace{
			Lease:       recompute.Trace{Failed: failed},
			StoreFailed: func(_ string, err error) { failed(err) },
		},
	})
}

// through returns a middleware that answers from the cache, and what the handler doesn't say, by the policy.
func through(responses *cache.Cache[middleware.Response], unsaid stale.Policy, failed func(error)) func(http.Handler) http.Handler {
	return middleware.New(responses, middleware.Options{Policy: unsaid, MaxBody: largest, Unpurged: failed})
}
