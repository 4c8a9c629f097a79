// Package middleware puts a cache in front of HTTP handlers.
//
// GET and HEAD are answered from a [cache.Cache] of [Response]: a miss is one run of the handler for all who ask, in
// the process and across replicas; what is stale is served while it is made anew, and in place of an error.
//
//	responses, err := cache.New[middleware.Response](store, cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
//	r.Use(middleware.New(responses, middleware.Options{}))
//
// The handler's headers decide, as RFC 9111 says for a shared cache: without a lifetime nothing is stored, and nothing
// that is for one client is given to another, those who merely waited together included. The handler runs on a
// context that keeps the values of the client's but not its end, with a header of its own and without a body; it may
// go on after that client has gone. Put what is about the client, such as authentication, compression or request IDs, outside.
package middleware

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
)

// front is what all handlers behind one middleware have in common.
type front struct {
	cache  *cache.Cache[Response]
	o      Options
	passes passes
	hit    string // see hitOf
}

// handler is a handler behind the cache.
type handler struct {
	*front
	next http.Handler
}

// New returns a middleware that answers from c, and from the handler what c can't answer. It panics if the options can't
// work, and says which.
func New(c *cache.Cache[Response], o Options) func(http.Handler) http.Handler {
	f, err := newFront(c, o)
	if err != nil {
		panic(err.Error())
	}
	return func(next http.Handler) http.Handler { return &handler{front: f, next: next} }
}

func newFront(c *cache.Cache[Response], o Options) (*front, error) {
	o, err := o.complete()
	if c == nil {
		err = errors.Join(errors.New("middleware: the cache is nil: give one from cache.New[middleware.Response]"), err)
	}
	return &front{cache: c, o: o, hit: hitOf(o.Name)}, err
}

// hitOf returns what Cache-Status says of a hit, up to its ttl: the one report that is worth preparing.
func hitOf(name string) string {
	h := http.Header{}
	report{hit: true, timed: true}.add(h, name)
	return strings.TrimSuffix(h.Get("Cache-Status"), "0")
}

func (p report) plainHit() bool {
	return p == report{hit: true, timed: true, ttl: p.ttl}
}

// ServeHTTP makes the first of three decisions: whether the cache has anything to do with the request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.change(w, r)
		return
	}
	if why := aside(r); why != "" {
		h.direct(w, r, report{fwd: fwdBypass, detail: why})
		return
	}
	key, personal, err := h.key(r)
	if err != nil { // never answer from, or into, a key that isn't this request's
		h.direct(w, r, report{fwd: fwdBypass, detail: "key"})
		return
	}
	x := &exchange{handler: h, w: w, r: r, key: key, personal: personal, asked: parseRequested(r.Header)}
	switch {
	case x.asked.onlyIfCached:
		x.onlyIfCached()
	case h.o.Obey && x.asked.noStore:
		h.direct(w, r, report{fwd: fwdRequest, detail: "no-store"})
	case r.Method == http.MethodHead, len(r.Header["Range"]) > 0:
		x.ifStored()
	default:
		x.run()
	}
}

// aside says why a GET or HEAD is none of the cache's business.
func aside(r *http.Request) string {
	switch {
	case len(r.Header["Upgrade"]) > 0:
		return "upgrade"
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return "body"
	case strings.Contains(strings.Join(r.Header["Accept"], ","), "text/event-stream"):
		return "stream"
	case forOrigin(r.Header):
		return "condition"
	}
	return ""
}

// key returns where the answer to r is kept. Requests that say who sends them have answers of their own: one that
// turns out to be private is then no reason for the others not to share theirs.
func (f *front) key(r *http.Request) (key string, personal bool, err error) {
	if key, err = f.o.Key.of(r); err != nil {
		return "", false, err
	}
	if _, ok := shared(r, nil, directives{}, f.o.sharing()); !ok {
		return personalKey(key), true, nil
	}
	return key, false, nil
}

func personalKey(key string) string { return "personal:" + key }

// change passes on a request that may change something, and invalidates what it has changed before its client knows:
// else he could see the old state after the new one.
func (h *handler) change(w http.ResponseWriter, r *http.Request) {
	o, asked := &observer{ResponseWriter: w}, r.Clone(r.Context()) // the handler may change r
	o.before = func(status int, header http.Header) {
		if gets := invalidated(asked, status, header, h.o.Key.scheme(asked)); len(gets) > 0 {
			if err := h.purge(context.WithoutCancel(r.Context()), gets...); err != nil && h.o.Unpurged != nil {
				h.o.Unpurged(err)
			}
		}
		h.status(header, report{fwd: fwdMethod})
	}
	o.serve(h.next, r)
}

// direct passes a request on as it is.
func (h *handler) direct(w http.ResponseWriter, r *http.Request, why report) {
	if h.o.Silent {
		h.next.ServeHTTP(w, r)
		return
	}
	o := &observer{ResponseWriter: w, before: func(_ int, header http.Header) { h.status(header, why) }}
	o.serve(h.next, r)
}

// status says in the header how the answer came about.
func (f *front) status(header http.Header, how report) {
	switch {
	case f.o.Silent:
	case how.plainHit():
		header["Cache-Status"] = append(header["Cache-Status"], f.hit+strconv.FormatInt(int64(how.ttl/time.Second), 10))
	default:
		how.add(header, f.o.Name)
	}
}
