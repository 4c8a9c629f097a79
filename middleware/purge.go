package middleware

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/bellwether-cache/bellwether/cache"
)

// Purge removes what is stored for URIs, in all variants and for all replicas. The options are those of the
// middleware, whose keys they make. A URI is one as the handler sees it: absolute, with the scheme and host of the
// requests. Change the source first, then purge: once it has returned nil, no answer is served that was begun before.
//
// Where Key.Headers or Key.Add are used it is refused: purge by a request that has what they look at, with [PurgeRequest].
func Purge(ctx context.Context, c *cache.Cache[Response], o Options, uris ...string) error {
	if len(o.Key.Headers) > 0 || o.Key.Add != nil {
		return errors.New("middleware: Purge: the keys depend on Key.Headers or Key.Add, which no URI has: use PurgeRequest")
	}
	requests := make([]*http.Request, len(uris))
	for i, uri := range uris {
		u, err := url.Parse(uri)
		if err != nil {
			return fmt.Errorf("middleware: Purge: %w", err)
		}
		if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("middleware: Purge: %q is no absolute URI: it begins with http:// or https:// and a host", uri)
		}
		requests[i] = requestFor(u)
	}
	return PurgeRequest(ctx, c, o, requests...)
}

// requestFor returns the GET that a client would send for u.
func requestFor(u *url.URL) *http.Request {
	h := http.Header{"X-Forwarded-Proto": {u.Scheme}}
	r := &http.Request{Method: http.MethodGet, Host: u.Host, Header: h, URL: &url.URL{
		Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery,
	}}
	if r.URL.Path == "" {
		r.URL.Path = "/"
	}
	if u.Scheme == "https" {
		r.TLS = new(tls.ConnectionState)
	}
	return r
}

// PurgeRequest is [Purge] for the URIs of requests, whatever their method.
func PurgeRequest(ctx context.Context, c *cache.Cache[Response], o Options, requests ...*http.Request) error {
	f, err := newFront(c, o)
	if err != nil {
		return err
	}
	gets := make([]*http.Request, len(requests))
	for i, r := range requests {
		gets[i] = get(r, r.URL)
	}
	return f.purge(ctx, gets...)
}

// purge removes what is stored for requests. What is personal goes first: what is not may be taken from it, see fill.
func (f *front) purge(ctx context.Context, gets ...*http.Request) error {
	var personal, common []string
	for _, r := range gets {
		key, err := f.o.Key.of(r)
		if err != nil {
			return err
		}
		personal, common = append(personal, personalKey(key)), append(common, key)
	}
	return errors.Join(f.cache.Delete(ctx, personal...), f.cache.Delete(ctx, common...))
}
