package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/pglock"
)

// inOwner tells a process of this program that it is an owner, and of what.
const inOwner = "BELLWETHER_EXAMPLE_OWNER"

// task is what an owner does.
type task struct {
	URL    string
	Report string
	TTL    time.Duration
	Fenced bool // it writes under its fence
}

// said is what an owner tells: first its fence, then what became of its write.
type said struct {
	Fence int64
	Saved bool
	Lost  bool // it knew, when it had written, that its lease was gone
}

// ownerMain does the owner's work and exits, in a process that start started; in any other it returns at once.
func ownerMain() {
	spec, ours := os.LookupEnv(inOwner)
	if !ours {
		return
	}
	if err := own(context.Background(), spec); err != nil {
		fmt.Fprintln(os.Stderr, "owner:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func own(ctx context.Context, spec string) error {
	var t task
	if err := json.Unmarshal([]byte(spec), &t); err != nil {
		return err
	}
	p, err := open(ctx, t.URL, t.TTL)
	if err != nil {
		return err
	}
	tell := json.NewEncoder(os.Stdout)
	return p.guard.Do(ctx, t.Report, func(ctx context.Context, h *recompute.Held) error {
		fence, _ := h.Fence()
		if err := tell.Encode(said{Fence: fence}); err != nil {
			return err
		}
		// The work. The pause falls between the last look at ctx and the write, where no look can help.
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return err
		}
		save := reports{p.db}.save
		if !t.Fenced {
			save = reports{p.db}.saveAnyway
		}
		saved, err := save(context.WithoutCancel(ctx), t.Report, "by the paused owner", fence)
		if err != nil {
			return err
		}
		<-ctx.Done()
		return tell.Encode(said{Fence: fence, Saved: saved, Lost: errors.Is(context.Cause(ctx), recompute.ErrLost)})
	})
}

// parts are what a process works with.
type parts struct {
	db     *pgxpool.Pool
	leases *pgxpool.Pool // to the same database; a lease keeps its connection
	guard  *recompute.Guard
}

func open(ctx context.Context, url string, ttl time.Duration) (p parts, err error) {
	if p.db, err = pgxpool.New(ctx, url); err != nil {
		return p, err
	}
	if p.leases, err = pgxpool.New(ctx, url); err != nil {
		return p, err
	}
	locker, err := pglock.New(p.leases, pglock.Options{Prefix: "reports"})
	if err != nil {
		return p, err
	}
	if err := locker.Create(ctx); err != nil {
		return p, err
	}
	p.guard, err = recompute.NewGuard(locker, recompute.GuardOptions{TTL: ttl, Wait: time.Minute})
	return p, err
}

func (p parts) close() {
	p.db.Close()
	p.leases.Close()
}

// owner is a process that owns a lease.
type owner struct {
	*exec.Cmd
	stdin io.Writer
	said  *json.Decoder
}

func start(ctx context.Context, t task) (*owner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	spec, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	o := &owner{Cmd: exec.CommandContext(ctx, self)}
	o.Env, o.Stderr = append(os.Environ(), inOwner+"="+string(spec)), os.Stderr
	stdin, err := o.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := o.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.stdin, o.said = stdin, json.NewDecoder(stdout)
	return o, o.Start()
}

// hear waits for the next thing that the owner says.
func (o *owner) hear() (s said, err error) {
	if err := o.said.Decode(&s); err != nil {
		return s, fmt.Errorf("the owner said no more: %w", err)
	}
	return s, nil
}
