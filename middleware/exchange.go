package middleware

import (
	"errors"
	"net/http"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// exchange is one request that the cache may answer.
type exchange struct {
	*handler
	w     http.ResponseWriter
	r     *http.Request
	key   string
	asked requested

	personal bool // it says who sends it
}

// hops is how often a request is sent on from one key to another: to the variant, and once more if what the response
// depends on has changed meanwhile.
const hops = 4

// run answers from the cache, or has the handler fill it.
func (x *exchange) run() {
	f := x.fill(x.key, Response{})
	for range hops {
		if x.passes.has(f.key) {
			break
		}
		if f = x.ask(f); f == nil {
			return
		}
	}
	x.direct(x.w, x.r, report{fwd: fwdBypass, detail: "not-shared"})
}

// ask answers by what the cache says of one key, or returns what to ask next.
func (x *exchange) ask(f *fill) (next *fill) {
	got, err := x.lookup(f)
	if r := f.leave(err); r != nil { // the handler's answer has begun to reach the client
		r.see()
		return nil
	}
	switch own := f.own(); {
	case err != nil:
		x.fail(f, err)
	case got.Outcome == cache.Computed && own != nil:
		own.deliver()
	case got.Value.isSignpost():
		return x.fill(variantKey(x.key, got.Value, x.r.Header), got.Value)
	case !x.serves(got):
		x.passes.add(f.key) // others like it would wait in vain, too
		x.direct(x.w, x.r, report{fwd: fwdMiss, detail: "not-shared"})
	default:
		x.hit(got)
	}
	return nil
}

// lookup asks the cache. What package cache serves in place of a wait is not for HTTP: stale-if-error is about errors
// alone (RFC 5861 §4). So is what the client demands, if he is obeyed.
func (x *exchange) lookup(f *fill) (cache.Result[Response], error) {
	got, err := x.cache.Lookup(x.r.Context(), f.key, f.compute)
	if err != nil || got.Value.isSignpost() || f.begun() {
		return got, err
	}
	waits := got.Outcome == cache.Stale && got.Value.late(got.Age)
	insists := x.o.Obey && (got.Outcome == cache.Hit || got.Outcome == cache.Stale) && !x.content(got)
	if !waits && !insists {
		return got, nil
	}
	f.insisted = insists
	switch anew, err := x.cache.Refresh(x.r.Context(), f.key, f.compute); {
	case err == nil, insists, errors.Is(err, cache.ErrPass):
		return anew, err
	}
	return got, nil
}

// content says whether the client, who is obeyed, will take what is stored.
func (x *exchange) content(got cache.Result[Response]) bool {
	age, left := got.Value.Age+got.Age, got.Value.Fresh-got.Age
	return !x.asked.noCache && age <= x.asked.maxAge && (x.asked.minFresh == 0 || left >= x.asked.minFresh)
}

// serves says whether a response that came about for somebody else may answer this request too.
func (x *exchange) serves(got cache.Result[Response]) bool {
	if got.Outcome == cache.Collapsed && got.Value.Fresh <= 0 {
		return false // each must ask the handler
	}
	return x.mayHave(got.Value)
}

func (x *exchange) mayHave(r Response) bool {
	if !r.usable() || !x.personal {
		return r.usable()
	}
	_, ok := reusable(x.r, r.Header, effective(r.Header, x.o.Targeted), x.o.sharing())
	return ok
}

// hit answers with what was stored, or made for another.
func (x *exchange) hit(got cache.Result[Response]) {
	age := got.Value.Age + got.Age
	left := got.Value.Fresh - got.Age
	if left < 0 {
		left -= time.Second - 1 // whole seconds, and below 0 when stale
	}
	how := report{hit: true, timed: true, ttl: left}
	if got.Outcome == cache.Collapsed {
		how = report{fwd: fwdMiss, collapsed: true}
	}
	x.send(got.Value, max(0, age), how)
}

// ifStored answers from the cache if it can without asking the handler for more than this request does: a part, or the
// header alone, make no response to store.
func (x *exchange) ifStored() {
	switch got, ok := x.peek(); {
	case !ok:
		x.direct(x.w, x.r, report{fwd: fwdMiss})
	case got.Outcome == cache.Stale:
		x.run() // it is to be made anew, behind the answer
	default:
		x.hit(got)
	}
}

// onlyIfCached is for a client who wants no answer but a stored one (RFC 9111 §5.2.1.7).
func (x *exchange) onlyIfCached() {
	got, ok := x.peek()
	if !ok {
		x.sayStatus(http.StatusGatewayTimeout, report{detail: "only-if-cached"})
		return
	}
	x.hit(got)
}

// peek returns the response for this request if there is one that may be served.
func (x *exchange) peek() (got cache.Result[Response], ok bool) {
	got, err := x.cache.Get(x.r.Context(), x.key)
	if err == nil && got.Value.isSignpost() {
		got, err = x.cache.Get(x.r.Context(), variantKey(x.key, got.Value, x.r.Header))
	}
	return got, err == nil && !got.Value.isSignpost() && x.mayHave(got.Value) && (!x.o.Obey || x.content(got))
}

// fail answers when the cache has an error instead of a response.
func (x *exchange) fail(f *fill, err error) {
	failed, panicked := (*failure)(nil), (*recompute.PanicError)(nil)
	switch own := f.own(); {
	case errors.Is(err, cache.ErrPass) && own != nil: // it turned out not to be for others when it was complete
		own.deliver()
	case errors.Is(err, cache.ErrPass):
		x.direct(x.w, x.r, report{fwd: fwdBypass, detail: "not-shared"})
	case errors.As(err, &failed) && own != nil && own.failed == failed:
		own.deliver()
	case errors.As(err, &failed) && failed.isFor(x):
		x.send(failed.forOthers(), noAge, report{fwd: fwdMiss, collapsed: true})
	case errors.As(err, &panicked):
		x.panicked(f, panicked)
	default:
		x.failElsewhere(err)
	}
}
