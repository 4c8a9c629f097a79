package site

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/middleware"
)

const (
	headerTimeout = 5 * time.Second
	grace         = 5 * time.Second // for requests under way when a replica closes
)

// Replica is one server of the fleet: its own Redis client, its own cache, its own port. It shares nothing with the others but
// Redis, and the origin that counts.
type Replica struct {
	Name, URL string

	rdb       *redis.Client
	responses *cache.Cache[middleware.Response]
	server    *http.Server
	served    chan error
	underway  atomic.Int64 // requests
	failures  atomic.Int64 // of Redis
	close     func() error // once
}

// start serves on addr. The replica owns rdb, whether it starts or not.
func start(name, addr string, rdb *redis.Client, origin *Origin, o Options) (*Replica, error) {
	r := &Replica{Name: name, rdb: rdb, served: make(chan error, 1)}
	r.close = sync.OnceValue(r.shutdown)
	if err := r.listen(addr, origin, o); err != nil {
		return nil, errors.Join(fmt.Errorf("site: replica %s: %w", name, err), r.Close())
	}
	return r, nil
}

func (r *Replica) listen(addr string, origin *Origin, o Options) (err error) {
	if r.responses, err = open(r.rdb, o, r.failed); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	r.URL = "http://" + listener.Addr().String()
	byHand := plain{rdb: r.rdb, prefix: o.Prefix + "plain:", origin: origin}
	r.server = &http.Server{Handler: r.routes(origin, byHand), ReadHeaderTimeout: headerTimeout}
	go func() { r.served <- r.server.Serve(listener) }()
	return nil
}

func (r *Replica) failed(error) { r.failures.Add(1) }

// Underway is the number of requests that the replica has not answered yet.
func (r *Replica) Underway() int { return int(r.underway.Load()) }

// Failures is how often Redis failed or took too long.
func (r *Replica) Failures() int { return int(r.failures.Load()) }

// Close answers the requests under way, then closes the cache and the client. Twice is once.
func (r *Replica) Close() error { return r.close() }

func (r *Replica) shutdown() error {
	var errs []error
	if r.server != nil {
		errs = append(errs, r.stop())
	}
	if r.responses != nil {
		errs = append(errs, r.responses.Close())
	}
	return errors.Join(append(errs, r.rdb.Close())...)
}

func (r *Replica) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, r.server.Close())
	}
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
