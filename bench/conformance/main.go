// Command conformance is a proxy with Bellwether's middleware in it, and the scorer of the public suite
// http-tests/cache-tests, which tells how caches keep to the RFCs.
//
//	go run ./bench/conformance -suite DIR                   a run of the suite that is checked out in DIR, and its score
//	go run ./bench/conformance -listen ADDR -origin URL     the proxy alone, until it is interrupted
//	go run ./bench/conformance -h                           the flags
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program. It returns the exit code: 0 done, 1 failed, 2 bad flags, 3 the score is less than was asked for.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p, err := parseParams(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "conformance:", err)
		return 2
	}
	if p.suite == "" {
		err = serve(ctx, p, stdout)
	} else {
		err = score(ctx, p, stdout, stderr)
	}
	var less shortfall
	switch {
	case errors.As(err, &less):
		fmt.Fprintln(stderr, "conformance:", err)
		return 3
	case err != nil:
		fmt.Fprintln(stderr, "conformance:", err)
		return 1
	}
	return 0
}

// serve is the proxy alone.
func serve(ctx context.Context, p params, stdout io.Writer) error {
	proxy, err := openProxy(p, p.origin)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "proxy at", proxy.url, "for", p.origin)
	<-ctx.Done()
	return proxy.Close()
}

// score says how a run of the suite went.
func score(ctx context.Context, p params, stdout, stderr io.Writer) error {
	categories, err := loadCategories(ctx, p.suite)
	if err != nil {
		return err
	}
	var results map[string]result
	if p.results == "" {
		fmt.Fprintln(stderr, "running the suite: this takes about a minute")
		results, err = runSuite(ctx, p)
	} else {
		results, err = readResults(p.results)
	}
	if err != nil {
		return err
	}
	t := tally(categories, results)
	if err := t.write(stdout); err != nil {
		return err
	}
	return t.atLeast(p.required, p.optimal, p.failing)
}

// runSuite runs the suite's client against the proxy, and that against the suite's server.
func runSuite(ctx context.Context, p params) (results map[string]result, err error) {
	origin, err := startOrigin(ctx, p.suite)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, origin.Close()) }()
	proxy, err := openProxy(p, origin.url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()
	return runClient(ctx, p.suite, proxy.url)
}
