package middleware

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"github.com/bellwether-cache/bellwether/stale"
)

// Response is what the cache keeps of a handler's answer. It is made by the middleware, and never changed once it is
// published: all who get one may share it.
//
// Where a response depends on fields of the request, what is kept for the URI itself is a Response that only says so:
// it has Vary and a Generation, and the responses are elsewhere.
type Response struct {
	Status int
	Header http.Header
	Body   []byte

	Age             time.Duration // when it was published
	Fresh           time.Duration // how long it stays fresh from then on
	WhileRevalidate time.Duration // and how long it may then be served while it is made anew

	Vary       []string // request fields, in canonical form and sorted
	Generation string   // changes whenever the responses of the URI have to go
}

// Immutable says that a Response is never changed, so that package cache need not copy it for each caller.
func (Response) Immutable() {}

// signpost returns what is kept for a URI whose responses differ by fields of the request.
func signpost(fields []string) Response {
	return Response{Vary: fields, Generation: rand.Text()}
}

func (r Response) isSignpost() bool { return r.Generation != "" }

// usable says whether it can be served at all: what comes out of a store is not trusted.
func (r Response) usable() bool { return 200 <= r.Status && r.Status <= 999 }

// late says whether, at the given time since its publication, it may only be served in place of an error.
func (r Response) late(since time.Duration) bool { return since >= r.Fresh+r.WhileRevalidate }

// variantKey is where the response is kept that the signpost leads the sender of h to. That of an earlier generation is
// found by nobody any more.
func variantKey(primary string, sign Response, h http.Header) string {
	b := appendPart(nil, primary)
	b = appendPart(b, sign.Generation)
	b = appendPart(b, variant(sign.Vary, h))
	sum := sha256.Sum256(b)
	return "variant:" + hex.EncodeToString(sum[:])
}

// signpostLasts is how much longer a signpost is kept than the response that it was put up for. Without it the
// responses to other requests that came later could not be found any more, though they are still good.
const signpostLasts = time.Hour

func signpostPolicy(p stale.Policy) stale.Policy {
	return stale.Policy{Fresh: min(p.Retain(), never) + signpostLasts}
}

// union returns the sorted fields of both.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// covers says whether all fields are among those of the signpost.
func (r Response) covers(fields []string) bool { return len(union(r.Vary, fields)) == len(r.Vary) }
