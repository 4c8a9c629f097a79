package middleware

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-cache/bellwether/stale"
)

// keepFor is how long a response that has validators is kept after it can't be served any more: until then the handler
// can be asked whether it still holds.
const keepFor = time.Hour

// judgement is what the status and header of a response say of it.
type judgement struct {
	ok       bool   // it may be stored, and given to others
	why      string // if not: a token for Cache-Status
	failing  bool   // it is an error that a stale response stands in for
	explicit bool   // its lifetime is the handler's word
	policy   stale.Policy
	age      time.Duration
	says     directives
}

// judge makes the second of three decisions: whether the answer to r may be stored and shared, as far as its header
// tells.
func (f *front) judge(r *http.Request, status int, h http.Header) judgement {
	d := effective(h, f.o.Targeted)
	j := judgement{says: d}
	j.why, j.ok = storable(r, status, h, d, f.o.sharing())
	if j.ok && dismembers(h, d, f.o.Drop...) {
		j.why, j.ok = "fields", false
	}
	f.window(&j, status, h, time.Now())
	j.failing = status == 500 || 502 <= status && status <= 504
	if j.failing && j.explicit && j.policy.Fresh > 0 {
		j.failing = !j.ok // it may be stored like any other
	}
	if !j.ok || j.failing {
		return j
	}
	j.why, j.ok = f.fits(j, h)
	return j
}

// fits says whether a response that may be stored is one that is worth it, and complete by the time it ends.
func (f *front) fits(j judgement, h http.Header) (why string, ok bool) {
	switch media, _, _ := strings.Cut(h.Get("Content-Type"), ";"); {
	case j.policy.Retain() == 0:
		return "no-lifetime", false
	case lower(strings.TrimSpace(media)) == "text/event-stream":
		return "stream", false
	case len(h["Trailer"]) > 0:
		return "trailer", false
	case len(h["Content-Length"]) == 1 && declared(h) > int64(f.o.MaxBody):
		return "size", false
	}
	return "", true
}

// window says for how long the response is good for what, by now: its age counts.
func (f *front) window(j *judgement, status int, h http.Header, now time.Time) {
	d, p := j.says, &j.policy
	p.Fresh, j.explicit = lifetime(h, d, now)
	if !j.explicit {
		p.Fresh = f.unsaid(status, h, d, now)
	}
	lives := p.Fresh > 0
	p.WhileRevalidate = window(lives, f.o.Policy.WhileRevalidate, d, staleWhileRevalidate)
	p.IfError = window(lives, f.o.Policy.IfError, d, staleIfError)
	p.Jitter = f.o.Policy.Jitter
	j.age = correctedAge(h, now, 0)
	left := j.age
	for _, w := range []*time.Duration{&p.Fresh, &p.WhileRevalidate, &p.IfError} {
		spent := min(*w, left)
		*w, left = *w-spent, left-spent
	}
	if _, ok := conditions(h); ok && (lives || j.explicit) {
		p.Keep = keepFor
	}
}

func window(lives bool, unsaid time.Duration, d directives, says func(directives) (time.Duration, bool)) time.Duration {
	said, explicit := says(d)
	switch {
	case explicit:
		return said
	case lives:
		return unsaid
	}
	return 0
}

// unsaid is the lifetime of a response that doesn't say it.
func (f *front) unsaid(status int, h http.Header, d directives, now time.Time) time.Duration {
	if life, ok := f.o.Statuses[status]; ok {
		return life
	}
	guess := time.Duration(0)
	if f.o.Heuristic {
		guess = heuristic(status, h, d, now)
	}
	switch {
	case guess > 0:
		return guess
	case slices.Contains([]int{200, 203, 204, 300, 301, 308}, status):
		return f.o.Policy.Fresh
	case status == http.StatusNotFound, status == http.StatusGone:
		return f.o.Policy.Negative
	}
	return 0
}
