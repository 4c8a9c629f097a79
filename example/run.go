package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bellwether-cache/bellwether/example/backend"
	"github.com/bellwether-cache/bellwether/example/demo"
	"github.com/bellwether-cache/bellwether/example/docs"
	"github.com/bellwether-cache/bellwether/example/holder"
	"github.com/bellwether-cache/bellwether/example/site"
)

const (
	replicas = 3
	lease    = 2 * time.Second
)

// run starts the replicas, shows the demonstration, and serves on until ctx ends, unless it is told to do all that once.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if f.goroot == "" {
		if f.goroot, err = docs.GOROOT(ctx); err != nil {
			return err
		}
	}
	library, err := docs.Open(f.goroot)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, library.Close()) }()
	redis, err := backend.Open(ctx, f.redis)
	if err != nil {
		return err
	}
	defer redis.Close()
	fleet, err := site.Start(redis.Client, site.NewOrigin(library), site.Options{
		Replicas: replicas, Addr: f.addr, Lease: lease,
		Prefix: "bellwether-example:" + strings.ToLower(rand.Text()[:6]) + ":", // cold in every run
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fleet.Close()) }()
	greet(stdout, redis, fleet)
	err = show(ctx, f, redis.Addr, fleet, library, stdout, stderr)
	if f.once || !errors.Is(err, demo.ErrBroken) && err != nil {
		return err
	}
	bid(stdout, fleet)
	<-ctx.Done()
	return err
}

// show runs the demonstration.
func show(ctx context.Context, f flags, redis string, fleet *site.Fleet, library *docs.Library, stdout, stderr io.Writer) error {
	stage := demo.Stage{
		Fleet: fleet, Library: library, Clients: f.clients, Steady: f.steady,
		Out: stdout, Progress: demo.NewProgress(stderr),
		Holder: func(ctx context.Context, path string) (*holder.Holder, error) {
			return holder.Start(ctx, holder.Task{
				Redis: redis, Prefix: fleet.Options.Prefix, GOROOT: f.goroot, Path: path, Lease: fleet.Options.Lease,
			})
		},
	}
	return stage.Run(ctx)
}

func greet(out io.Writer, redis *backend.Backend, fleet *site.Fleet) {
	fmt.Fprintf(out, "%d replicas of a documentation server share one Redis: %s\n", len(fleet.Replicas), redis)
	if redis.Embedded {
		fmt.Fprintln(out, "(for real Redis: -redis host:port, or REDIS_URL)")
	}
}

// commands show what the middleware does; the README has their answers.
var commands = []string{
	"curl -si %s/pkg/fmt | head",
	"curl -X DELETE %s/pkg/fmt",
	"curl -si %s/hot/fmt | head",
	"curl -si %s/you -b name=Ada",
	"curl -siN %s/live",
	"curl -si %s/failing",
}

func bid(out io.Writer, fleet *site.Fleet) {
	fmt.Fprintln(out, "\nThe replicas serve on; look at Cache-Status, Age and X-Replica:")
	for _, url := range fleet.URLs("/") {
		fmt.Fprintln(out, "  ", url)
	}
	for _, command := range commands {
		fmt.Fprintf(out, "\n   "+command, fleet.Replicas[0].URL)
	}
	fmt.Fprint(out, "\n\n")
	fmt.Fprintln(out, "Ctrl-C ends it.")
}
