package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

// options are those of the middleware that differ from the defaults: what the suite asks about and is off until set.
func options(p params) middleware.Options {
	return middleware.Options{
		Heuristic:  true,
		Targeted:   []string{"CDN-Cache-Control"},
		Obey:       p.obey,
		Cookies:    p.cookies,
		SetCookies: p.cookies,
	}
}

// proxy is a reverse proxy on a server of its own.
type proxy struct {
	url    string
	server *http.Server
	served chan error
	below  closers
}

func openProxy(p params, origin *url.URL) (*proxy, error) {
	quiet := log.New(io.Discard, "", 0) // the suite breaks connections on purpose
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(origin) },
		Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100},
		ErrorLog:  quiet,
	}
	x := &proxy{served: make(chan error, 1)}
	handler, err := x.cached(p, forward)
	if err != nil {
		return nil, errors.Join(err, x.below.Close())
	}
	listener, err := net.Listen("tcp", p.listen)
	if err != nil {
		return nil, errors.Join(err, x.below.Close())
	}
	x.url = "http://" + listener.Addr().String()
	x.server = &http.Server{Handler: handler, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() { x.served <- x.server.Serve(listener) }()
	return x, nil
}

// cached puts the replicas' caches in front of a handler.
func (x *proxy) cached(p params, next http.Handler) (http.Handler, error) {
	if p.none {
		return next, nil
	}
	store := x.openStore(p.redis)
	replicas := make([]http.Handler, p.replicas)
	for i := range replicas {
		responses, err := cache.New(store, cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
		if err != nil {
			return nil, err
		}
		x.below = append(x.below, responses)
		replicas[i] = middleware.New(responses, options(p))(next)
	}
	var asked atomic.Uint64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		replicas[asked.Add(1)%uint64(len(replicas))].ServeHTTP(w, r)
	}), nil
}

func (x *proxy) openStore(addr string) cache.Store {
	if addr == "" {
		return cache.NewMemory()
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	x.below = append(x.below, client)
	return redisstore.New(client, redisstore.Options{Prefix: "conformance"})
}

// Close ends the server, then what it stands on.
func (x *proxy) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := x.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = x.server.Close()
	}
	if served := <-x.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return errors.Join(err, x.below.Close())
}

// closers are what stands on what: the last one first.
type closers []io.Closer

// Close closes them all.
func (all closers) Close() (err error) {
	for _, c := range slices.Backward(all) {
		err = errors.Join(err, c.Close())
	}
	return err
}
