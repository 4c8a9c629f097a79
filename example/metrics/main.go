// The metrics example shows the hooks of Bellwether as Prometheus metrics: a service with slow pages behind the cache and a periodic
// job under a lease, on Redis, and its /metrics. It is a module of its own so that nobody who uses Bellwether pulls in a client of
// Prometheus.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bellwether-cache/bellwether/example/backend"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("metrics", flag.ContinueOnError)
	flags.SetOutput(stderr)
	at := flags.String("redis", "", "Redis server, `host:port` or redis:// URL (default: an embedded one)")
	addr := flags.String("addr", "127.0.0.1:8090", "loopback `address` to serve on")
	takes := flags.Duration("takes", 200*time.Millisecond, "how long a page takes to make")
	if err := flags.Parse(args); err != nil {
		return err
	}
	listener, err := listen(*addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	redis, err := backend.Open(ctx, *at)
	if err != nil {
		return err
	}
	defer redis.Close()
	s, err := open(redis.Client(), *takes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(stdout, "%s\nhttp://%s/pages/any\nhttp://%[2]s/metrics\n", redis, listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen keeps to loopback: metrics and an example are not for the network.
func listen(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("-addr %q: must be host:port with localhost, 127.x.y.z or [::1] as the host", addr)
	}
	return net.Listen("tcp", addr)
}
