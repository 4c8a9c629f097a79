package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/redis/go-redis/v9"
)

// overHTTP puts an arm to work on a server of its own, which so many callers reach over connections that they keep.
func overHTTP(arm Arm, callers int) Arm {
	open := arm.New
	arm.New = func(rdb *redis.Client, t Terms) (Replica, error) {
		site, err := arm.site(open, rdb, t)
		if err != nil {
			return nil, err
		}
		return openWeb(site, callers)
	}
	return arm
}

func (a Arm) site(open func(*redis.Client, Terms) (Replica, error), rdb *redis.Client, t Terms) (Site, error) {
	if a.Site != nil {
		return a.Site(rdb, t)
	}
	r, err := open(rdb, t)
	return byHand{r}, err
}

// web is a replica whose callers come over HTTP.
type web struct {
	site     Site
	server   *http.Server
	served   chan error
	client   *http.Client
	url      string
	computes sync.Map // by key: a function can't be sent over HTTP
}

func openWeb(site Site, callers int) (*web, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, site.Close())
	}
	w := &web{
		site: site, served: make(chan error, 1), url: "http://" + listener.Addr().String() + "/",
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers, DisableCompression: true}},
	}
	w.server = &http.Server{Handler: site.routes(w.find)}
	go func() { w.served <- w.server.Serve(listener) }()
	return w, nil
}

func (w *web) find(key string) Compute {
	compute, _ := w.computes.Load(key)
	return compute.(Compute) // stored before anyone asks
}

func (w *web) Get(ctx context.Context, key string, compute Compute) ([]byte, error) {
	w.computes.Store(key, compute) // all callers of a key bring the same
	return w.send(ctx, http.MethodGet, key)
}

func (w *web) Delete(ctx context.Context, key string) error {
	_, err := w.send(ctx, http.MethodDelete, key)
	return err
}

// send names the same host to all replicas, as clients of a load balancer do.
func (w *web) send(ctx context.Context, method, key string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+key, nil)
	if err != nil {
		return nil, err
	}
	r.Host = "bench.example"
	a, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	v, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("bench: status %d", a.StatusCode)
	}
	return v, err
}

// FailedSteps is that of the arm, if it counts any.
func (w *web) FailedSteps() int {
	counts, ok := w.site.(interface{ FailedSteps() int })
	if !ok {
		return 0
	}
	return counts.FailedSteps()
}

// Close ends the server, whose requests have been answered, and the arm.
func (w *web) Close() error {
	w.client.CloseIdleConnections()
	err := w.server.Close()
	if served := <-w.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, w.site.Close())
}
