package holder

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/bellwether-cache/bellwether/example/backend"
	"github.com/bellwether-cache/bellwether/example/docs"
	"github.com/bellwether-cache/bellwether/example/site"
)

// Main does the holder's work and exits, in a process that Start started; in any other it returns at once.
func Main() {
	spec, ours := os.LookupEnv(variable)
	if !ours {
		return
	}
	if err := hold(context.Background(), spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// hold renders a page through the cache, but never passes the gate before it.
func hold(ctx context.Context, spec string) error {
	var task Task
	if err := json.Unmarshal([]byte(spec), &task); err != nil {
		return fmt.Errorf("holder: %w", err)
	}
	redis, err := backend.Open(ctx, task.Redis)
	if err != nil {
		return err
	}
	library, err := docs.Open(task.GOROOT)
	if err != nil {
		return err
	}
	rdb := redis.Client()
	pages, err := site.OpenPages(rdb, task.Prefix, task.Lease, site.Lasting, func(error) {})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		cancel()
	}()
	origin := site.NewOrigin(library)
	gate := origin.Hold(task.Path)
	go func() {
		<-gate.Entered()
		fmt.Println(word)
	}()
	_, err = pages.GetOrCompute(ctx, task.Path, func(ctx context.Context) (site.Page, error) {
		return origin.Render(ctx, task.Path)
	})
	if ctx.Err() != nil {
		return nil // the parent is gone, and with it everyone who would want to know
	}
	return err
}
