package middleware

import (
	"net/http"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// forwarded says why a request went to the handler (RFC 9211 §2.2).
type forwarded string

const (
	fwdBypass  forwarded = "bypass"    // the cache has nothing to do with such requests
	fwdMethod  forwarded = "method"    // nor with such methods
	fwdURIMiss forwarded = "uri-miss"  // nothing is stored for the URI
	fwdVary    forwarded = "vary-miss" // something is, but not for what Vary names
	fwdMiss    forwarded = "miss"      // nothing is stored, for whatever reason
	fwdRequest forwarded = "request"   // the request's directives demand it
	fwdStale   forwarded = "stale"     // what is stored is stale
	fwdPartial forwarded = "partial"   // what is stored is only a part
)

// report is what Cache-Status says of one answer (RFC 9211). Zero fields are left out.
type report struct {
	hit       bool
	fwd       forwarded // when not a hit
	fwdStatus int       // the handler's status, if another than the answer's
	ttl       time.Duration
	timed     bool // ttl is known: negative when stale
	stored    bool
	collapsed bool
	key       string
	detail    string // a token, or any text
}

// add appends the report to the response's Cache-Status, behind those of caches nearer to the origin.
func (p report) add(h http.Header, name string) {
	item := httpsfv.NewItem(tokenOr(name))
	set := func(on bool, key string, value any) {
		if on {
			item.Params.Add(key, value)
		}
	}
	set(p.hit, "hit", true)
	set(!p.hit && p.fwd != "", "fwd", httpsfv.Token(p.fwd))
	set(p.fwdStatus != 0, "fwd-status", p.fwdStatus)
	set(p.timed, "ttl", int64(p.ttl/time.Second))
	set(p.stored, "stored", true)
	set(p.collapsed, "collapsed", true)
	set(p.key != "", "key", printable(p.key))
	set(p.detail != "", "detail", tokenOr(p.detail))
	if member, err := httpsfv.Marshal(item); err == nil {
		h["Cache-Status"] = append(h["Cache-Status"], member)
	}
}

// tokenOr returns a token if s can be one, and a string of it else.
func tokenOr(s string) any {
	if _, err := httpsfv.Marshal(httpsfv.NewItem(httpsfv.Token(s))); err == nil {
		return httpsfv.Token(s)
	}
	return printable(s)
}

// printable escapes what no string of structured fields can have.
func printable(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
