package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/pglock"
)

// inServer tells a process of this program that it is a server, and what it is asked.
const inServer = "BELLWETHER_EXAMPLE_SERVER"

// request is a charge on its way.
type request struct {
	URL    string
	Charge charge
	Key    string // "": the server only has a lease
	Crash  bool   // the server dies when it has charged and not yet answered
}

// errNoAnswer is all that a client knows when the connection breaks: the charge may have been made or not.
var errNoAnswer = errors.New("once: no answer")

// serverMain answers one request and exits, in a process that ask started; in any other it returns at once.
func serverMain() {
	spec, ours := os.LookupEnv(inServer)
	if !ours {
		return
	}
	if err := serve(context.Background(), spec); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(ctx context.Context, spec string) error {
	var r request
	if err := json.Unmarshal([]byte(spec), &r); err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, r.URL)
	if err != nil {
		return err
	}
	answer, err := handle(ctx, accounts{pool}, r)
	if err != nil {
		return err
	}
	if r.Crash {
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}

// handle charges: once for a key; without one under a lease, which keeps two from charging at the same time, and does
// nothing about one after the other.
func handle(ctx context.Context, a accounts, r request) (answer receipt, err error) {
	if r.Key != "" {
		return a.chargeOnce(ctx, r.Key, r.Charge)
	}
	leases, err := pgxpool.New(ctx, r.URL) // a lease keeps its connection
	if err != nil {
		return answer, err
	}
	defer leases.Close()
	locker, err := pglock.New(leases, pglock.Options{Prefix: "accounts"})
	if err != nil {
		return answer, err
	}
	if err := locker.Create(ctx); err != nil {
		return answer, err
	}
	guard, err := recompute.NewGuard(locker, recompute.GuardOptions{})
	if err != nil {
		return answer, err
	}
	err = guard.Do(ctx, r.Charge.Account, func(ctx context.Context, _ *recompute.Held) (err error) {
		answer, err = a.chargeEachTime(ctx, r.Charge)
		return err
	})
	return answer, err
}

// ask has a new server answer the request.
func ask(ctx context.Context, r request) (answer receipt, err error) {
	self, err := os.Executable()
	if err != nil {
		return answer, err
	}
	spec, err := json.Marshal(r)
	if err != nil {
		return answer, err
	}
	server := exec.CommandContext(ctx, self)
	server.Env, server.Stderr = append(os.Environ(), inServer+"="+string(spec)), os.Stderr
	said, err := server.Output()
	if err != nil {
		return answer, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return answer, json.Unmarshal(said, &answer)
}
