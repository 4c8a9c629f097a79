// The example serves the documentation of the Go standard library from three replicas with one Bellwether cache between them, and
// shows what the cache does when everyone comes at once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/bellwether-cache/bellwether/example/holder"
)

func main() {
	holder.Main() // in the process that the demonstration kills
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled) && ctx.Err() != nil: // interrupted: somebody wanted it to end
	default:
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}
