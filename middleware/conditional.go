package middleware

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// conditional are the request fields that make an answer depend on what the client has (RFC 9110 §13.1), and Range.
var conditional = []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Range"}

// withoutConditions returns a copy of a request's header that asks for the whole response, whatever the client has.
func withoutConditions(h http.Header) http.Header {
	c := h.Clone()
	for _, field := range conditional {
		delete(c, field)
	}
	return c
}

// forOrigin reports whether the request has a condition that no cache may judge (RFC 9111 §4.3.2).
func forOrigin(req http.Header) bool {
	return len(req["If-Match"])+len(req["If-Unmodified-Since"]) > 0
}

// notModified reports whether a stored response is what the client already has, so that a 304 is the answer: by
// If-None-Match, or without one by If-Modified-Since (RFC 9110 §13.2.2).
func notModified(req http.Header, status int, resp http.Header) bool {
	if status < 200 || status > 299 {
		return false
	}
	if lines := req["If-None-Match"]; len(lines) > 0 {
		return matchesAny(strings.Join(lines, ","), resp.Get("Etag"))
	}
	since, ok := dateOf(req, "If-Modified-Since")
	if !ok || len(req["If-Modified-Since"]) > 1 {
		return false
	}
	modified, ok := dateOf(resp, "Last-Modified")
	if !ok {
		modified, ok = dateOf(resp, "Date") // RFC 9111 §4.3.2
	}
	return ok && !modified.After(since)
}

// matchesAny compares weakly (RFC 9110 §8.8.3.2). A list that stops being one counts as far as it is one.
func matchesAny(list, tag string) bool {
	if strings.Trim(list, space) == "*" {
		return true
	}
	if !isTag(tag) {
		return false
	}
	for {
		one, rest, ok := cutTag(strings.TrimLeft(list, space+","))
		if !ok {
			return false
		}
		if opaque(one) == opaque(tag) {
			return true
		}
		list = rest
	}
}

// cutTag returns the entity tag that s begins with, and what follows it (RFC 9110 §8.8.3).
func cutTag(s string) (tag, rest string, ok bool) {
	start := len(s) - len(opaque(s)) + 1 // of what is in quotes
	if start > len(s) || s[start-1] != '"' {
		return "", "", false
	}
	for i := start; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[:i+1], s[i+1:], true
		case c <= ' ' || c == 0x7f:
			return "", "", false
		}
	}
	return "", "", false
}

func isTag(s string) bool {
	_, rest, ok := cutTag(s)
	return ok && rest == ""
}

func opaque(tag string) string { return strings.TrimPrefix(tag, "W/") }

func weak(tag string) bool { return strings.HasPrefix(tag, "W/") }

// headersOf304 returns what a 304 has of the stored response's header: what describes the representation is left
// out, as the client has it (RFC 9110 §15.4.5).
func headersOf304(stored http.Header) http.Header {
	h := stored.Clone()
	for _, field := range []string{"Content-Encoding", "Content-Language", "Content-Length", "Content-Range", "Content-Type"} {
		delete(h, field)
	}
	if len(h["Etag"]) > 0 {
		delete(h, "Last-Modified")
	}
	return h
}

// conditions returns the fields that ask a handler whether the stored response is still right (RFC 9111 §4.3.1). ok is
// false if there is nothing to ask by.
func conditions(stored http.Header) (ask http.Header, ok bool) {
	ask = http.Header{}
	if tag := stored.Get("Etag"); isTag(tag) {
		ask.Set("If-None-Match", tag)
	}
	if _, ok := dateOf(stored, "Last-Modified"); ok {
		ask.Set("If-Modified-Since", stored.Get("Last-Modified"))
	}
	return ask, len(ask) > 0
}

// ofBody are the fields that the stored bytes depend on: a 304 comes without bytes and can't change them.
var ofBody = []string{"Content-Length", "Content-Encoding", "Content-Range"}

// freshen returns the stored header as a 304 updates it (RFC 9111 §3.2, §4.3.4). ok is false if the 304 is about another
// representation: then the handler must be asked again, without conditions. The result may be one that isn't storable.
func freshen(stored, from304 http.Header) (h http.Header, ok bool) {
	tag := from304.Get("Etag")
	if isTag(tag) && !weak(tag) && tag != stored.Get("Etag") && len(stored["Etag"]) > 0 {
		return nil, false
	}
	h = stored.Clone()
	delete(h, "Age") // the old one's: this one has just been confirmed
	for field, lines := range endToEnd(from304, directives{}, ofBody...) {
		h[field] = slices.Clone(lines)
	}
	return h, true
}

// strongDate returns a Last-Modified that says which bytes there were (RFC 9110 §8.8.2.2): made a second or more later.
func strongDate(h http.Header) (time.Time, bool) {
	modified, ok := dateOf(h, "Last-Modified")
	made, dated := dateOf(h, "Date")
	return modified, ok && dated && made.Sub(modified) >= time.Second
}
