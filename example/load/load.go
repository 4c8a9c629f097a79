// Package load sends HTTP requests and says how long they took and what came back.
package load

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/example/site"
)

const timeout = time.Minute // longest that one request may take, so that a run always ends

// Sample is one request and its answer.
type Sample struct {
	Took      time.Duration
	Status    int
	Outcome   string // how the cache came to the answer, in the words of package cache
	Rendering string // which rendering the page is from
	Err       error
}

// Client sends requests, as many at once as it is asked for.
type Client struct{ http *http.Client }

// New returns a client that keeps up to idle connections to each server.
func New(idle int) *Client {
	return &Client{http: &http.Client{
		Timeout:   timeout,
		Transport: &http.Transport{MaxIdleConnsPerHost: idle, DisableCompression: true},
	}}
}

// Close lets go of the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get asks for a page.
func (c *Client) Get(ctx context.Context, url string) Sample {
	return c.send(ctx, http.MethodGet, url, nil)
}

// Held asks for a page only if the cache has it (RFC 9111 §5.2.1.7); else the status is 504.
func (c *Client) Held(ctx context.Context, url string) Sample {
	return c.send(ctx, http.MethodGet, url, http.Header{"Cache-Control": {"only-if-cached"}})
}

// Delete takes a page out of the cache.
func (c *Client) Delete(ctx context.Context, url string) Sample {
	return c.send(ctx, http.MethodDelete, url, nil)
}

func (c *Client) send(ctx context.Context, method, url string, header http.Header) (s Sample) {
	began := time.Now()
	defer func() { s.Took = time.Since(began) }()
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return Sample{Err: fmt.Errorf("load: %w", err)}
	}
	if header != nil {
		r.Header = header
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return Sample{Err: fmt.Errorf("load: %w", err)}
	}
	_, err = io.Copy(io.Discard, answer.Body)
	if err = cmp.Or(err, answer.Body.Close()); err != nil {
		err = fmt.Errorf("load: read the answer: %w", err)
	}
	return Sample{
		Status:  answer.StatusCode,
		Outcome: outcome(answer.Header.Get("Cache-Status")), Rendering: answer.Header.Get(site.HeaderRendering),
		Err: err,
	}
}

// outcome reads a Cache-Status (RFC 9211) of one cache.
func outcome(status string) string {
	_, ttl, _ := strings.Cut(status, ";ttl=")
	switch hit := strings.Contains(status, ";hit"); {
	case status == "":
		return ""
	case hit && strings.HasPrefix(ttl, "-"):
		return cache.Stale.String()
	case hit:
		return cache.Hit.String()
	case strings.Contains(status, ";collapsed"):
		return cache.Collapsed.String()
	default:
		return cache.Computed.String()
	}
}
