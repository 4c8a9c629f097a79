package middleware

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// mode is where what the handler writes goes.
type mode uint8

const (
	recorded mode = iota // into the recording
	through              // to the client, as it is written
	nowhere              // the response is for the client alone, and there is none
)

// recording is the http.ResponseWriter of a handler that runs for the cache. It makes the second decision, at
// WriteHeader; a response that isn't for others goes through to the client.
type recording struct {
	fill   *fill
	ctx    context.Context         // of the computation
	stop   context.CancelCauseFunc // ends the handler's
	former cache.Result[Response]
	behind bool // the client is answered with the former response
	asking bool // the handler is asked whether the former response still holds

	header    http.Header // the handler's
	declared  int64       // how long it says the body is, -1 if it doesn't
	wrote     bool        // the handler has written the header
	confirmed bool        // it answered that the former response holds
	mode      mode
	judged    judgement
	committed bool // the header has gone to the client
	cut       bool // he has what he wants: the body is not sent
	hijacked  bool

	mu        sync.Mutex // for what follow reads
	more      sync.Cond
	response  Response
	over      bool          // the handler has ended
	ending    bool          // follow is to end
	following chan struct{} // closed when follow has ended, nil if it hasn't begun
	unfit     bool          // follow has ended before its time
	sent      int           // bytes of the body
	timer     *time.Timer

	released chan struct{} // closed when nothing is written to the client any more
	upset    any           // what the client's writer panicked with

	broken   bool // the response is not complete
	stored   bool
	panicked *recompute.PanicError
	failed   *failure
}

func newRecording(ctx context.Context, f *fill, former cache.Result[Response]) *recording {
	rec := &recording{fill: f, ctx: ctx, former: former, header: http.Header{}, released: make(chan struct{})}
	rec.behind = former.Value.usable() && !former.Value.late(former.Age) && !f.insisted
	rec.more.L = &rec.mu
	return rec
}

// run has the handler answer into the recording.
func (rec *recording) run(next http.Handler, r *http.Request) {
	returned := false
	defer func() {
		rec.end(returned, recover())
		rec.stop(nil)
	}()
	next.ServeHTTP(rec, r)
	if !rec.wrote && !rec.hijacked && r.Context().Err() == nil {
		rec.WriteHeader(http.StatusOK)
	}
	returned = true
}

// end makes the recording what the handler has made of it.
func (rec *recording) end(returned bool, panicked any) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.over = true
	if panicked != nil {
		rec.panicked = &recompute.PanicError{Value: panicked, Stack: debug.Stack()}
	}
	if rec.timer != nil {
		rec.timer.Stop()
	}
	if rec.mode == recorded && !rec.confirmed {
		rec.broken = rec.broken || !rec.wrote || !rec.completes() || rec.ctx.Err() != nil
		rec.complete()
	}
	rec.broken = rec.broken || !returned
	if rec.mode == through {
		rec.trail()
		close(rec.released)
	}
	rec.more.Broadcast()
}

func (rec *recording) completes() bool {
	return rec.declared < 0 || !bodied(rec.response.Status) || rec.declared == int64(len(rec.response.Body))
}

// complete adds what only the whole response tells.
func (rec *recording) complete() {
	r := &rec.response
	if rec.broken || rec.following != nil || !bodied(r.Status) {
		return
	}
	rec.sniff()
	if rec.declared < 0 && !rec.trails() {
		r.Header.Set("Content-Length", fmt.Sprint(len(r.Body)))
	}
	if rec.fill.o.Tag && r.Header.Get("Etag") == "" && r.Status == http.StatusOK {
		r.Header.Set("Etag", tagOf(*r))
	}
}

// Header returns the handler's own header: what outer handlers have set is theirs.
func (rec *recording) Header() http.Header { return rec.header }

// WriteHeader takes in the status, and decides where the response goes.
func (rec *recording) WriteHeader(status int) {
	switch {
	case rec.wrote || rec.hijacked:
		return
	case status < 100 || status > 999:
		panic(fmt.Sprintf("middleware: the handler's status is %d, must be from 100 to 999", status)) // as net/http does
	case status < 200 && status != http.StatusSwitchingProtocols:
		if rec.mode == through {
			rec.fill.w.WriteHeader(status)
		} else {
			rec.fill.early(rec, status, rec.header)
		}
		return
	}
	rec.wrote = true
	rec.mu.Lock()
	rec.response.Status, rec.response.Header = status, canonical(rec.header).Clone()
	if _, said := rec.header["Date"]; !said {
		rec.response.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	rec.declared = declared(rec.response.Header)
	rec.mu.Unlock()
	rec.decide()
}

func (rec *recording) decide() {
	switch rec.mode {
	case nowhere:
		return
	case through:
		rec.commit(false)
		return
	}
	if rec.asking && rec.response.Status == http.StatusNotModified {
		rec.confirmed = true
		return
	}
	rec.judged = rec.fill.judge(rec.fill.r, rec.response.Status, rec.response.Header)
	if !rec.judged.ok && !rec.judged.failing {
		rec.pass(rec.judged.why)
	}
}

// Write takes in a part of the body.
func (rec *recording) Write(b []byte) (int, error) {
	if !rec.wrote {
		rec.WriteHeader(http.StatusOK)
	}
	switch {
	case rec.mode == nowhere:
		return 0, errNobody
	case rec.mode == through && rec.cut:
		return len(b), nil
	case rec.mode == through:
		return rec.fill.w.Write(b)
	}
	size := len(rec.response.Body) + len(b)
	switch {
	case rec.confirmed, !bodied(rec.response.Status):
		return 0, http.ErrBodyNotAllowed
	case rec.declared >= 0 && int64(size) > rec.declared:
		return 0, rec.overrun()
	case size > rec.fill.o.MaxBody:
		rec.pass("size")
		return rec.Write(b)
	}
	return rec.append(b)
}

// overrun notes that the handler has more to say than it said.
func (rec *recording) overrun() error {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.broken = true
	return http.ErrContentLength
}

func (rec *recording) append(b []byte) (int, error) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.over { // a goroutine that the handler has left behind
		return 0, errOver
	}
	r := &rec.response
	r.Body = append(r.Body, b...)
	if rec.timer == nil && rec.copied() && r.telling() {
		rec.timer = time.AfterFunc(quiet, rec.follow)
	}
	rec.more.Signal()
	return len(b), nil
}

// freshen makes the recording of a 304 that of the response that it confirms. It says whether the 304 is about that.
func (rec *recording) freshen() bool {
	old := rec.former.Value
	h, ok := freshen(old.Header, rec.response.Header)
	if !ok {
		return false
	}
	rec.response = Response{Status: old.Status, Header: h, Body: old.Body}
	rec.judged = rec.fill.judge(rec.fill.r, old.Status, h)
	return true
}

// report says how the response came about.
func (rec *recording) report(stored bool) report {
	how := report{fwd: fwdURIMiss, stored: stored}
	switch {
	case rec.fill.insisted:
		how.fwd = fwdRequest
	case rec.former.Value.usable():
		how.fwd = fwdStale
	case rec.fill.sign.isSignpost():
		how.fwd = fwdVary
	}
	if rec.confirmed {
		how.fwdStatus = http.StatusNotModified
	}
	if !stored {
		how.detail = rec.judged.why
	}
	return how
}
