// Command fenced shows a paused owner whose late write changes nothing, on a real PostgreSQL.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgserver"
)

const ttl = time.Second

func main() {
	ownerMain()
	url := flag.String("postgres", "", "`URL` of a database; without it a server is started for the time of the example")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fenced:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, out io.Writer) error {
	url, stop, err := pgserver.Use(url)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	for _, fenced := range []bool{false, true} {
		if _, err := pause(ctx, task{URL: url, Report: "2026-11", TTL: ttl, Fenced: fenced}, out); err != nil {
			return err
		}
	}
	return nil
}

// result is what is left in the end.
type result struct {
	first, second int64 // fences
	late          said  // of the first owner's write
	content       string
}

// pause lets a process own the lease, pauses it until its successor has written, and lets it go on.
func pause(ctx context.Context, t task, out io.Writer) (r result, err error) {
	p, err := open(ctx, t.URL, t.TTL)
	if err != nil {
		return r, err
	}
	defer p.close()
	table := reports{p.db}
	if err := table.create(ctx, t.Report); err != nil {
		return r, err
	}
	defer func() { _ = table.drop(context.WithoutCancel(ctx)) }()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	fmt.Fprintln(out, map[bool]string{false: "without the fence: UPDATE … WHERE id = $3", true: "with the fence: UPDATE … WHERE id = $3 AND fencing_token < $2"}[t.Fenced])

	first, err := start(ctx, t)
	if err != nil {
		return r, err
	}
	defer func() {
		cancel() // which kills it, paused or not: what it had to say it has said
		_ = first.Wait()
	}()
	s, err := first.hear()
	if err != nil {
		return r, err
	}
	r.first = s.Fence
	fmt.Fprintf(out, "  process %d owns the lease for %v, fence %d, and is paused (SIGSTOP)\n", first.Process.Pid, t.TTL, r.first)
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		return r, err
	}
	began := time.Now()
	err = p.guard.Do(ctx, t.Report, func(ctx context.Context, h *recompute.Held) (err error) {
		r.second, _ = h.Fence()
		_, err = table.save(ctx, t.Report, "by its successor", r.second)
		return err
	})
	if err != nil {
		return r, err
	}
	fmt.Fprintf(out, "  %v later its successor has the lease, fence %d, and writes the report\n", time.Since(began).Round(100*time.Millisecond), r.second)
	if _, err := fmt.Fprintln(first.stdin, "write"); err != nil {
		return r, err
	}
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		return r, err
	}
	if r.late, err = first.hear(); err != nil {
		return r, err
	}
	if r.content, err = table.content(ctx, t.Report); err != nil {
		return r, err
	}
	fmt.Fprintf(out, "  process %d goes on (SIGCONT) and writes. Rows changed: %d. The report is now %q\n", first.Process.Pid, map[bool]int{true: 1}[r.late.Saved], r.content)
	return r, nil
}
