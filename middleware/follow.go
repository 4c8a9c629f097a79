package middleware

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
)

// quiet is how long the client waits for a response to become complete before he gets what there is of it. One that is
// complete by then has a Content-Length, whatever the handler said.
const quiet = 10 * time.Millisecond

// copied says whether the recording is copied to the client while it goes on: not if he is served otherwise, or might be.
func (rec *recording) copied() bool { return !rec.behind && !rec.judged.failing && !rec.confirmed }

// follow copies the recording to the client, who may be slow: the handler and all others don't wait for him.
func (rec *recording) follow() {
	rec.mu.Lock()
	if rec.following != nil || rec.mode != recorded || !rec.fill.take(rec) {
		rec.mu.Unlock()
		return
	}
	rec.following = make(chan struct{})
	rec.sniff()
	bare := len(rec.response.Body) == 0 && !rec.over
	rec.mu.Unlock()
	defer rec.unfollow()
	rec.commit(true)
	if bare { // the handler has flushed its header alone
		_ = http.NewResponseController(rec.fill.w).Flush()
	}
	for !rec.cut {
		part, last, ok := rec.part()
		if !ok {
			return
		}
		n, err := rec.fill.w.Write(part)
		rec.sent += n
		if err != nil {
			return
		}
		if last && !rec.trails() {
			return
		}
		_ = http.NewResponseController(rec.fill.w).Flush() // a response with a length has no trailers
		if last {
			return
		}
	}
}

// part waits for what is to be sent next. last: nothing comes after it. Not ok: follow is to end at once.
func (rec *recording) part() (b []byte, last, ok bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for rec.sent == len(rec.response.Body) && !rec.over && !rec.ending {
		rec.more.Wait()
	}
	return rec.response.Body[rec.sent:], rec.over || rec.mode == through, !rec.ending || rec.mode == through
}

// unfollow ends follow: the client is released, or left to the handler.
func (rec *recording) unfollow() {
	rec.upset = recover()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.mode != through {
		rec.unfit = true
		if rec.over {
			rec.trail()
		}
		close(rec.released)
	}
	close(rec.following)
}

// quit has follow end now.
func (rec *recording) quit() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.ending = true
	rec.more.Broadcast()
}

// see waits until nothing is written to the client any more, and ends the exchange as the handler has ended.
func (rec *recording) see() {
	<-rec.released
	rec.mu.Lock()
	defer rec.mu.Unlock()
	switch {
	case rec.panicked != nil:
		panic(rec.panicked.Value)
	case rec.upset != nil:
		panic(rec.upset)
	case rec.broken || !rec.over && !rec.cut:
		panic(http.ErrAbortHandler) // what the client has is not the whole
	}
}

// pass keeps the response to the client: from now on the handler writes to him, at his pace, and all who wait for it
// are told to do without.
func (rec *recording) pass(why string) {
	rec.mu.Lock()
	follow := rec.following
	if rec.judged.why = why; rec.unfit || !rec.fill.take(rec) {
		rec.mode = nowhere
	} else {
		rec.mode = through
	}
	rec.judged.ok = false
	rec.ending = true
	rec.more.Broadcast()
	rec.mu.Unlock()
	cache.Pass(rec.ctx, rec.fill.aside(rec.response.Status))
	if rec.mode == nowhere {
		rec.stop(errNobody)
		return
	}
	context.AfterFunc(rec.fill.r.Context(), func() { rec.stop(context.Cause(rec.fill.r.Context())) })
	if follow != nil {
		<-follow
	} else if rec.wrote {
		rec.commit(false)
	}
	rec.drain()
}

// drain writes what was recorded and not yet sent.
func (rec *recording) drain() {
	if rest := rec.response.Body[rec.sent:]; len(rest) > 0 && !rec.cut {
		_, _ = rec.fill.w.Write(rest) // the next one fails too
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.response.Body, rec.sent = nil, 0
}

// commit writes the header to the client, or a 304 if that is all he needs.
func (rec *recording) commit(stored bool) {
	if rec.committed {
		return
	}
	rec.committed = true
	x := rec.fill.exchange
	status, h := rec.response.Status, rec.response.Header
	if asksIf(x.r.Header) && notModified(x.r.Header, status, h) {
		status, h, rec.cut = http.StatusNotModified, headersOf304(h), true
	}
	put(x.w.Header(), h)
	x.status(x.w.Header(), rec.report(stored))
	x.w.WriteHeader(status)
}

// deliver answers with the recording, now that it is complete.
func (rec *recording) deliver() {
	x := rec.fill.exchange
	x.send(rec.response, noAge, rec.report(rec.stored))
	if rec.trails() {
		_ = http.NewResponseController(x.w).Flush()
		rec.trail()
	}
}

// trails says whether the handler has announced trailers, or set some that it didn't.
func (rec *recording) trails() bool {
	if len(rec.response.Header["Trailer"]) > 0 {
		return true
	}
	for field := range rec.header {
		if strings.HasPrefix(field, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// trail passes on the trailers.
func (rec *recording) trail() {
	if rec.hijacked {
		return
	}
	announced := members(rec.response.Header["Trailer"])
	for field, lines := range rec.header {
		isNamed := slices.ContainsFunc(announced, func(name string) bool { return http.CanonicalHeaderKey(name) == field })
		if isNamed || strings.HasPrefix(field, http.TrailerPrefix) {
			rec.fill.w.Header()[field] = slices.Clone(lines)
		}
	}
}
