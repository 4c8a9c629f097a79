// Command bench measures what a fleet of replicas does to a slow origin, with and without Bellwether.
//
//	go run ./bench            a table, on a redis-server that it starts and stops
//	go run ./bench -json      the same as JSON
//	go run ./bench -h         the flags
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
	if holder, ok := holderFromEnv(); ok {
		os.Exit(holder.run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program. It returns the exit code: 0 measured, 1 failed or interrupted, 2 bad flags.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	params, err := parseParams(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	report, err := measure(ctx, params, stderr)
	if report != nil {
		if werr := report.write(stdout, params.JSON); err == nil {
			err = werr
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	return 0
}

// measure runs every arm through every scenario, one at a time. When it is cut short it returns what it has, with the error.
func measure(ctx context.Context, p Params, stderr io.Writer) (report *Report, err error) {
	server, err := openServer(ctx, p.Redis)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()

	report = newReport(p, server)
	steps := newProgress(stderr, len(p.Scenarios)*len(p.Arms)*p.Runs)
	defer steps.finish()
	for _, scenario := range p.Scenarios {
		for _, arm := range p.Arms {
			for n := range p.Runs {
				steps.describe(scenario.Name + " · " + arm.Name)
				result, err := runTrial(ctx, p, server.Addr, scenario, arm, n+1)
				if err != nil {
					return report, fmt.Errorf("%s, %s: %w", scenario.Name, arm.Name, err)
				}
				report.Results = append(report.Results, result)
				steps.step()
			}
		}
	}
	return report, nil
}
