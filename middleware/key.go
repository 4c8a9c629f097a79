package middleware

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	longestKey = 480 // bytes; package cache has room for a few more
	digestHead = 128 // bytes of a longer key that stay readable before its digest
)

// Key says which requests are answered by the same response. Its zero value tells apart all that differ in scheme, host
// (in any case), escaped path or raw query; GET and HEAD share. What the response names in Vary comes on top.
//
// WARNING: a handler that looks at what the key leaves out will have one client's answer sent to another.
type Key struct {
	// Space keeps the responses of a middleware apart from those of others over the same cache. Needed where one path
	// has two meanings, as under two http.StripPrefix.
	Space string

	// IgnoreQuery leaves these query parameters out of the key, such as utm_source. The handler still sees them.
	IgnoreQuery []string

	// AllowQuery leaves all query parameters but these out of the key. It and IgnoreQuery exclude each other.
	AllowQuery []string

	// Headers are request fields that belong to the key, for handlers that depend on them without a Vary. Their values
	// can be secrets, so the key has a digest of them.
	Headers []string

	// ForwardedProto believes an X-Forwarded-Proto that is http or https. Set it behind a proxy that ends TLS and
	// overwrites that field; without it the scheme is what this server speaks.
	ForwardedProto bool

	// Add returns what else belongs to the key, such as the tenant. It adds to the key and can't replace it. A request
	// for which it returns an error passes the cache by, alone. It must leave the request as it is, its body too.
	Add func(*http.Request) (string, error)
}

// check says what can't work.
func (k Key) check() error {
	if len(k.IgnoreQuery) > 0 && len(k.AllowQuery) > 0 {
		return errors.New("middleware: Key.IgnoreQuery and Key.AllowQuery are both set: set one of them")
	}
	for _, field := range k.Headers {
		if !isToken(field) {
			return fmt.Errorf("middleware: Key.Headers has %q, which can't be a header field: it takes names such as Accept", field)
		}
	}
	return nil
}

// of returns the key of a request. No two requests that differ in what the key is made of have the same.
func (k Key) of(r *http.Request) (string, error) {
	if r.URL.Opaque != "" {
		return "", errors.New("middleware: the target has no path to make a key of")
	}
	if !k.tells(r) {
		return "", errors.New("middleware: the target says more of its origin than the key")
	}
	b := make([]byte, 0, 256)
	for _, part := range [...]string{method(r), k.Space, k.scheme(r), lower(r.Host), r.URL.EscapedPath(), k.query(r.URL)} {
		b = appendPart(b, part)
	}
	if len(k.Headers) > 0 {
		sum := sha256.Sum256([]byte(variant(k.Headers, r.Header)))
		b = appendPart(b, hex.EncodeToString(sum[:]))
	}
	if k.Add != nil {
		added, err := k.Add(r)
		if err != nil {
			return "", fmt.Errorf("middleware: Key.Add: %w", err)
		}
		b = appendPart(b, added)
	}
	return shortened(b), nil
}

// tells says whether the key has all that the client's target has: one in absolute form names an origin, which can be any,
// and a handler may show it. What outer handlers make of the URL is theirs.
func (k Key) tells(r *http.Request) bool {
	u := r.URL
	absolute := r.RequestURI != "" && r.RequestURI[0] != '/'
	return !absolute || u.User == nil && (u.Scheme == "" || u.Scheme == k.scheme(r)) && (u.Host == "" || lower(u.Host) == lower(r.Host))
}

// method is the request's method, in the class of those that share a key.
func method(r *http.Request) string {
	if r.Method == "" || r.Method == http.MethodHead {
		return http.MethodGet
	}
	return r.Method
}

func (k Key) scheme(r *http.Request) string {
	proto := r.Header["X-Forwarded-Proto"]
	switch {
	case k.ForwardedProto && len(proto) == 1 && (proto[0] == "http" || proto[0] == "https"):
		return proto[0]
	case r.TLS != nil:
		return "https"
	default:
		return "http"
	}
}

// query returns the part of the query that belongs to the key, as it is written: neither decoded nor in another order,
// for handlers may depend on both. With its question mark, so that an empty query differs from none.
func (k Key) query(u *url.URL) string {
	if len(k.IgnoreQuery)+len(k.AllowQuery) == 0 {
		if u.RawQuery == "" && !u.ForceQuery {
			return ""
		}
		return "?" + u.RawQuery
	}
	kept := slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(parameter string) bool {
		name, ok := parameterName(parameter)
		return parameter == "" || ok && (slices.Contains(k.IgnoreQuery, name) || len(k.AllowQuery) > 0 && !slices.Contains(k.AllowQuery, name))
	})
	return strings.Join(kept, "&")
}

// parameterName returns the name of a query parameter. One that readers disagree about, over a semicolon or a broken
// escape, has none, and stays in the key.
func parameterName(parameter string) (name string, ok bool) {
	name, _, _ = strings.Cut(parameter, "=")
	name, err := url.QueryUnescape(name)
	return name, err == nil && !strings.Contains(parameter, ";")
}

// shortened replaces the end of a long key with a digest of the whole. A key begins with a digit, so the two never meet.
func shortened(key []byte) string {
	if len(key) <= longestKey {
		return string(key)
	}
	sum := sha256.Sum256(key)
	return "sha256:" + hex.EncodeToString(sum[:]) + ":" + string(key[:digestHead])
}
