package middleware

import (
	"net/http"
	"strings"
	"time"
)

// requested is what a client demands of a cache (RFC 9111 §5.2.1). A cache needn't obey, and one that obeys everybody
// lets everybody keep its handlers busy.
type requested struct {
	noCache, noStore, onlyIfCached bool

	maxAge   time.Duration // never, if not said
	minFresh time.Duration
	maxStale time.Duration // 0: no stale response
}

// parseRequested reads a request's Cache-Control, or without one its Pragma (RFC 9111 §5.4).
func parseRequested(h http.Header) requested {
	if len(h["Cache-Control"]) == 0 {
		return requested{noCache: pragmaNoCache(h), maxAge: never}
	}
	d := parseCacheControl(h["Cache-Control"])
	q := requested{noCache: d.has("no-cache"), noStore: d.has("no-store"), onlyIfCached: d.has("only-if-cached"), maxAge: never}
	if least, ok := d.seconds("max-age"); ok {
		q.maxAge = least
	}
	for _, arg := range d.args["min-fresh"] {
		q.minFresh = max(q.minFresh, d.number(arg)) // here more is stricter
	}
	if d.allows("max-stale") {
		q.maxStale = never
	} else {
		q.maxStale, _ = d.seconds("max-stale")
	}
	return q
}

func pragmaNoCache(h http.Header) bool {
	for _, directive := range members(h["Pragma"]) {
		if strings.EqualFold(directive, "no-cache") {
			return true
		}
	}
	return false
}

// accepts reports whether a response of this age and lifetime will do. revalidated: it may not be used stale.
func (q requested) accepts(age, fresh time.Duration, revalidated bool) bool {
	left := fresh - age
	stale := left <= 0
	switch {
	case q.noCache, age > q.maxAge:
		return false
	case stale && (revalidated || q.minFresh > 0):
		return false
	case stale:
		return -left <= q.maxStale && q.maxStale > 0
	default:
		return left >= q.minFresh
	}
}
