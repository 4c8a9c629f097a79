package middleware

import (
	"net/http"
	"slices"
)

// sharing is what the user allows beyond what is safe for any handler.
type sharing struct {
	cookies    bool     // answers to requests with a Cookie are the same for all
	setCookies bool     // responses with a Set-Cookie may be stored
	unsaid     bool     // a response needs no lifetime of its own: the policy gives one
	keyed      []string // request fields that belong to the key: Key.Headers, in canonical form
}

// storable reports whether the response to r may be stored, and given to those who ask for the same: RFC 9111 §3 for a
// shared cache, and what it leaves to judgement. If not, why is a token that says so.
func storable(r *http.Request, status int, h http.Header, d directives, o sharing) (why string, ok bool) {
	fields, all := varies(h)
	switch {
	case status < 200, status == http.StatusPartialContent, status == http.StatusNotModified:
		return "status", false // they are no complete response
	case d.has("must-understand") && !understood(status):
		return "must-understand", false
	case d.has("no-store") && !d.allows("must-understand"):
		return "no-store", false
	case d.private():
		return "private", false
	case all:
		return "vary", false
	case !o.setCookies && setsCookie(h, d):
		return "set-cookie", false
	case !o.unsaid && !cacheable(status, h, d):
		return "no-lifetime", false
	}
	return shared(r, fields, d, o)
}

// reusable reports whether a response that is storable may answer r, though another request asked for it. That their
// Vary fields match is another question.
func reusable(r *http.Request, h http.Header, d directives, o sharing) (why string, ok bool) {
	fields, all := varies(h)
	if all {
		return "vary", false
	}
	return shared(r, fields, d, o)
}

// shared reports whether the response isn't for the sender of r alone, though he may have said who he is. RFC 9111 §3.5
// is about Authorization. A Cookie identifies as well, and there the response must say that it is for all, or that it
// differs by Cookie. Where the field belongs to the key, the response is only for those who send the same.
func shared(r *http.Request, varies []string, d directives, o sharing) (why string, ok bool) {
	if d.allows("public") || d.has("s-maxage") {
		return "", true
	}
	identifies := func(field string) bool { return len(r.Header[field]) > 0 && !slices.Contains(o.keyed, field) }
	switch {
	case identifies("Authorization") && !d.has("must-revalidate"):
		return "authorization", false
	case identifies("Cookie") && !o.cookies && !slices.Contains(varies, "Cookie"):
		return "cookie", false
	}
	return "", true
}

// understood reports whether this cache knows what the status demands of it (RFC 9111 §5.2.2.3): all that need nothing.
func understood(status int) bool {
	return status != http.StatusIMUsed && http.StatusText(status) != ""
}

// setsCookie reports whether a Set-Cookie would be stored. One that no-cache or private names is taken out before.
func setsCookie(h http.Header, d directives) bool {
	return len(h["Set-Cookie"]) > 0 && !slices.Contains(excepted(d), "Set-Cookie")
}

// cacheable reports whether a response says that it may be stored, or its status does.
func cacheable(status int, h http.Header, d directives) bool {
	return guessable(status) || d.allows("public") || d.has("s-maxage") || d.has("max-age") || !d.targeted && len(h["Expires"]) > 0
}
