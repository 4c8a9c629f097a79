package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
	"github.com/bellwether-cache/bellwether/stale"
)

const (
	prefix = "metrics-example"
	every  = time.Second // the job
	fresh  = 2 * time.Second
)

// service is one replica: slow pages behind a cache, a periodic job under a lease, and their metrics.
type service struct {
	*metrics
	takes  time.Duration // to make a page
	rdb    redis.UniversalClient
	pages  *cache.Cache[middleware.Response]
	locker *redislock.Locker
	jobs   *recompute.Guard
	end    context.CancelFunc
	ends   sync.WaitGroup
}

// open returns a service that owns rdb, also if it fails.
func open(rdb redis.UniversalClient, takes time.Duration) (*service, error) {
	s := &service{metrics: newMetrics(), takes: takes, rdb: rdb, end: func() {}}
	if err := s.wire(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	var ctx context.Context
	ctx, s.end = context.WithCancel(context.Background())
	s.ends.Go(func() { s.work(ctx) })
	return s, nil
}

// wire gives each constructor its hooks.
func (s *service) wire() (err error) {
	store := redisstore.New(s.rdb, redisstore.Options{Prefix: prefix, Breaker: s.broke})
	s.pages, err = cache.New(store, cache.Options[middleware.Response]{
		Policy: stale.Policy{Fresh: time.Minute, Cooldown: time.Second},
		Trace:  s.trace(),
	})
	if err != nil {
		return err
	}
	s.watch(s.pages)
	if s.locker, err = redislock.New(s.rdb, redislock.Options{Prefix: prefix + "-jobs"}); err != nil {
		return err
	}
	s.jobs, err = recompute.NewGuard(s.locker, recompute.GuardOptions{Trace: s.leaseTrace("jobs")})
	return err
}

// work does the job once in each interval, in one of the replicas.
func (s *service) work(ctx context.Context) {
	for recompute.Pause(ctx, every) {
		_, _ = s.jobs.Try(ctx, "sweep", func(ctx context.Context, _ *recompute.Held) error { // what became of it is counted
			recompute.Pause(ctx, s.takes/4)
			return ctx.Err()
		})
	}
}

func (s *service) handler() http.Handler {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /pages/{name}", func(w http.ResponseWriter, r *http.Request) {
		recompute.Pause(r.Context(), s.takes)
		w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d, stale-while-revalidate=60, stale-if-error=300", int(fresh.Seconds())))
		fmt.Fprintf(w, "%s, made at %s\n", r.PathValue("name"), time.Now().Format(time.TimeOnly))
	})
	pages.HandleFunc("DELETE /pages/{name}", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent) // its success invalidates the page
	})
	cached := middleware.New(s.pages, middleware.Options{Unpurged: func(error) { s.unpurged.Inc() }})

	all := http.NewServeMux()
	all.Handle("/pages/", s.counted(cached(pages)))
	all.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}))
	return all
}

// Close ends the job and the cache, and then the client under them.
func (s *service) Close() error {
	s.end()
	s.ends.Wait()
	var faults []error
	if s.pages != nil {
		faults = append(faults, s.pages.Close())
	}
	if s.locker != nil {
		faults = append(faults, s.locker.Close())
	}
	return errors.Join(append(faults, s.rdb.Close())...)
}
