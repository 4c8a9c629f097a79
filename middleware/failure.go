package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// failure is a handler's answer that is an error. Those who waited for it in the same process share the answer; other
// processes only hear of the error, by its text.
type failure struct {
	response Response
	shared   http.Header // what others get of the response's
	asked    http.Header // of the request that it answers
	broken   bool
	judgement
}

const (
	failureText  = "middleware: the handler answered %d"
	brokenText   = "middleware: the handler broke off its answer"
	personalText = "middleware: the handler's answer is an error for one client alone"
	panicText    = "panic: " // what package cache makes of one
)

func (e *failure) Error() string {
	switch {
	case !e.usable():
		return brokenText
	case !e.ok:
		return personalText
	}
	return fmt.Sprintf(failureText, e.response.Status)
}

// forOthers is the answer without what is for its own client alone.
func (e *failure) forOthers() Response {
	r := e.response
	r.Header = e.shared
	return r
}

// usable says whether it is an answer at all: not if the handler broke off.
func (e *failure) usable() bool { return !e.broken && e.response.usable() }

// isFor says whether the sender of another request may have the same answer.
func (e *failure) isFor(x *exchange) bool {
	fields, _ := varies(e.response.Header)
	return e.usable() && e.ok && x.mayHave(e.response) && variant(fields, x.r.Header) == variant(fields, e.asked)
}

// panicked goes on with the panic of the own handler as if the cache weren't there. Somebody else's is an error, unless
// it means that an answer was broken off.
func (x *exchange) panicked(f *fill, p *recompute.PanicError) {
	switch own := f.own(); {
	case own != nil && own.panicked != nil:
		panic(own.panicked.Value)
	case errors.Is(p, http.ErrAbortHandler):
		x.direct(x.w, x.r, report{fwd: fwdMiss})
	default:
		x.sayStatus(http.StatusInternalServerError, report{fwd: fwdMiss, collapsed: true, detail: "panic"})
	}
}

// failElsewhere answers to an error that came without an answer.
func (x *exchange) failElsewhere(err error) {
	elsewhere, status := (*cache.FailedError)(nil), 0
	if errors.As(err, &elsewhere) {
		_, _ = fmt.Sscanf(elsewhere.Text, failureText, &status)
		if strings.HasPrefix(elsewhere.Text, panicText) && elsewhere.Text != panicText+http.ErrAbortHandler.Error() {
			status = http.StatusInternalServerError
		}
	}
	switch {
	case http.StatusText(status) != "":
		x.sayStatus(status, report{fwd: fwdMiss, collapsed: true})
	case errors.Is(err, recompute.ErrBusy), errors.Is(err, recompute.ErrLimit),
		x.r.Context().Err() != nil:
		x.sayStatus(http.StatusGatewayTimeout, report{fwd: fwdMiss, detail: "timeout"})
	default: // the cache is closed, or the handler asks for what it is about to answer
		x.direct(x.w, x.r, report{fwd: fwdBypass, detail: "cache"})
	}
}

// sayStatus answers with a status and its text.
func (x *exchange) sayStatus(status int, how report) {
	x.status(x.w.Header(), how)
	http.Error(x.w, http.StatusText(status), status)
}
