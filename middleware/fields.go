package middleware

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// hopByHop are the fields that are about one connection (RFC 9110 §7.6.1, RFC 9111 §3.1), and those for a proxy.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection",
}

// endToEnd returns what may be stored of a response's header, as a copy that shares nothing with it: all but the
// fields that are about one connection, those that Connection lists, those that a no-cache or private names, and
// trailers. drop are further ones, such as Set-Cookie.
func endToEnd(h http.Header, d directives, drop ...string) http.Header {
	kept := h.Clone()
	if kept == nil {
		kept = http.Header{}
	}
	maps.DeleteFunc(kept, func(field string, _ []string) bool { return strings.HasPrefix(field, http.TrailerPrefix) })
	for _, fields := range [][]string{members(h["Connection"]), members(h["Trailer"]), excepted(d), hopByHop, drop} {
		for _, field := range fields {
			kept.Del(field)
		}
	}
	return kept
}

// essential are the fields without which nobody knows for whom a stored response is, or what its bytes mean.
var essential = []string{"Vary", "Content-Encoding", "Content-Type"}

// dismembers reports whether what may be stored of a header lacks something essential.
func dismembers(h http.Header, d directives, drop ...string) bool {
	kept := endToEnd(h, d, drop...)
	return slices.ContainsFunc(essential, func(field string) bool { return len(kept[field]) < len(h[field]) })
}

// excepted returns the fields that a no-cache or private excepts from storage (RFC 9111 §5.2.2.4, .7).
func excepted(d directives) []string {
	noCache, _ := d.fields("no-cache")
	private, _ := d.fields("private")
	return slices.Concat(noCache, private)
}

// canonical returns the header with the names of its fields in canonical form, by which all rules look them up: a
// handler may have put others into the map. It is the same header if they are.
func canonical(h http.Header) http.Header {
	for field := range h {
		if field != http.CanonicalHeaderKey(field) {
			return canonicalCopy(h)
		}
	}
	return h
}

func canonicalCopy(h http.Header) http.Header {
	c := http.Header{}
	for _, field := range slices.Sorted(maps.Keys(h)) { // sorted: the lines of one field in two spellings have an order
		name := http.CanonicalHeaderKey(field)
		c[name] = append(c[name], h[field]...)
	}
	return c
}

// setFields puts fields into a response's header, in place of those of the same name. The values are copied.
func setFields(to, from http.Header) {
	for field, lines := range from {
		to[field] = slices.Clone(lines)
	}
}
