package middleware

import (
	"net/http"
	"net/url"
	"slices"
)

// safeMethods change nothing (RFC 9110 §9.2.1, and what IANA has registered as safe since). All others may.
var safeMethods = []string{"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"}

// invalidated returns GET requests for what the answer to r makes invalid: its own target, and what Location and
// Content-Location name if they are of the same origin (RFC 9111 §4.4). It is nothing if r changes nothing, or failed.
func invalidated(r *http.Request, status int, h http.Header, scheme string) []*http.Request {
	if r.Method == "" || slices.Contains(safeMethods, r.Method) || status < 200 || status > 399 {
		return nil
	}
	base := *r.URL
	base.Scheme, base.Host = scheme, r.Host
	gets := []*http.Request{get(r, r.URL)}
	for _, field := range []string{"Location", "Content-Location"} {
		u, err := base.Parse(h.Get(field))
		if h.Get(field) != "" && err == nil && sameOrigin(u, &base) && u.Opaque == "" {
			gets = append(gets, get(r, u))
		}
	}
	return gets
}

// get returns a request as r is, but for a GET of the URL. Its host is that of r: the origin is the same.
func get(r *http.Request, u *url.URL) *http.Request {
	g := r.WithContext(r.Context())
	g.Method, g.Body, g.ContentLength = http.MethodGet, http.NoBody, 0
	g.URL = &url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery}
	g.RequestURI = g.URL.RequestURI()
	return g
}

func sameOrigin(a, b *url.URL) bool {
	return lower(a.Scheme) == lower(b.Scheme) && lower(a.Hostname()) == lower(b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}
