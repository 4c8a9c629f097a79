package holder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// hold is one more replica, which renders a page but never passes the gate before it.
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
	origin := site.NewOrigin(library)
	gate := origin.Hold(task.Path)
	fleet, err := site.Start(redis.Client, origin, site.Options{Replicas: 1, Addr: "127.0.0.1:0", Prefix: task.Prefix, Lease: task.Lease})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		cancel()
	}()
	go func() {
		<-gate.Entered()
		fmt.Println(word)
	}()
	err = ask(ctx, fleet.URLs(site.PathPages + task.Path)[0])
	if ctx.Err() != nil {
		return nil // the parent is gone, and with it everyone who would want to know
	}
	return err
}

// ask sends a request that gets no answer while the gate is shut.
func ask(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("holder: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("holder: %w", err)
	}
	return errors.Join(fmt.Errorf("holder: status %d without a rendering that ends", answer.StatusCode), answer.Body.Close())
}
