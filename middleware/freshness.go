package middleware

import (
	"net/http"
	"slices"
	"time"
)

// lifetime says how long the response stays fresh, counted from when it was made: its age is no part of this. explicit
// reports whether the response says so itself, by s-maxage, max-age or Expires in this order (RFC 9111 §4.2.1). A
// response that must be revalidated each time is never fresh.
func lifetime(h http.Header, d directives, now time.Time) (fresh time.Duration, explicit bool) {
	if d.noCache() {
		return 0, true
	}
	for _, name := range []string{"s-maxage", "max-age"} {
		if fresh, ok := d.seconds(name); ok {
			return fresh, true
		}
	}
	if d.targeted || len(h["Expires"]) == 0 {
		return 0, false
	}
	made, ok := dateOf(h, "Date")
	if !ok {
		made = now
	}
	fresh = never
	for _, line := range h["Expires"] {
		ends, ok := parseDate(line)
		if !ok {
			return 0, true // "0" above all: it has already expired
		}
		fresh = min(fresh, ends.Sub(made))
	}
	return max(0, fresh), true
}

const longestGuess = 24 * time.Hour

// heuristic guesses the lifetime of a response that doesn't say it: a tenth of the time since it was last modified, at
// most a day (RFC 9111 §4.2.2). It is 0 unless the status, or public, allows a guess.
func heuristic(status int, h http.Header, d directives, now time.Time) time.Duration {
	modified, ok := dateOf(h, "Last-Modified")
	if !ok || d.noCache() || !guessable(status) && !d.allows("public") {
		return 0
	}
	made, ok := dateOf(h, "Date")
	if !ok {
		made = now
	}
	return min(max(0, made.Sub(modified)/10), longestGuess).Truncate(time.Second)
}

// guessable reports whether the status is heuristically cacheable (RFC 9110 §15.1).
func guessable(status int) bool {
	return slices.Contains([]int{200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501}, status)
}

// correctedAge is how old the response is on its arrival: what its Age says and the delay that it had, or what its Date
// says if that is more (RFC 9111 §4.2.3). Of a list of ages the first one counts, if it is one.
func correctedAge(h http.Header, now time.Time, delay time.Duration) time.Duration {
	apparent := time.Duration(0)
	if made, ok := dateOf(h, "Date"); ok {
		apparent = max(0, now.Sub(made)).Truncate(time.Second) // Date has no parts of a second
	}
	elements, _ := split(h.Get("Age"), ',')
	age, _ := deltaSeconds(elements[0])
	return max(apparent, age+delay)
}

// mustRevalidate reports whether the response may never be used stale: RFC 9111 §5.2.2.2, .4, .8 and .10.
func mustRevalidate(d directives) bool {
	return d.noCache() || d.has("must-revalidate") || d.has("proxy-revalidate") || d.has("s-maxage")
}

// staleWhileRevalidate is how long after its lifetime the response may be used while it is made anew (RFC 5861 §3).
func staleWhileRevalidate(d directives) (window time.Duration, explicit bool) {
	return staleWindow(d, "stale-while-revalidate")
}

// staleIfError is how long after its lifetime the response may be used in place of an error (RFC 5861 §4).
func staleIfError(d directives) (window time.Duration, explicit bool) {
	return staleWindow(d, "stale-if-error")
}

func staleWindow(d directives, name string) (window time.Duration, explicit bool) {
	if mustRevalidate(d) {
		return 0, true
	}
	return d.seconds(name)
}
