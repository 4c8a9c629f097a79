package middleware

import (
	"bufio"
	"net"
	"net/http"
	"time"
)

// Flush lets the client see what there is.
func (rec *recording) Flush() { _ = rec.FlushError() }

// FlushError is Flush that can fail. A response with a lifetime of its own is still recorded: its handler says that it
// comes to an end, and proxies flush every response whose length they don't know. One without is taken for a stream.
func (rec *recording) FlushError() error {
	if !rec.wrote {
		rec.WriteHeader(http.StatusOK)
	}
	if rec.mode == recorded && !rec.judged.explicit && !rec.judged.failing && !rec.confirmed {
		rec.pass("flush")
	}
	switch {
	case rec.mode == through:
		return http.NewResponseController(rec.fill.w).Flush()
	case rec.mode == nowhere:
		return errNobody
	case rec.copied():
		rec.hurry()
	}
	return nil
}

// hurry starts follow, unless it is under way.
func (rec *recording) hurry() {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.timer == nil {
		rec.timer = time.AfterFunc(0, rec.follow)
	} else if rec.following == nil {
		rec.timer.Reset(0)
	}
}

// Hijack hands the connection over, if there is a client.
func (rec *recording) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w := rec.Unwrap()
	if w == nil {
		return nil, nil, errNobody
	}
	rec.hijacked = true
	return http.NewResponseController(w).Hijack()
}

// Unwrap returns the client's writer, for what only that can do. Then the response is for the client alone.
func (rec *recording) Unwrap() http.ResponseWriter {
	if rec.mode == recorded {
		rec.pass("unwrapped")
	}
	if rec.mode == nowhere {
		return nil
	}
	if !rec.committed {
		put(rec.fill.w.Header(), rec.header)
	}
	return rec.fill.w
}

// SetReadDeadline has nothing to set: the request has no body. The same holds for EnableFullDuplex.
func (rec *recording) SetReadDeadline(time.Time) error { return nil }

// EnableFullDuplex see SetReadDeadline.
func (rec *recording) EnableFullDuplex() error { return nil }

// SetWriteDeadline is about the client. What is recorded has no deadline.
func (rec *recording) SetWriteDeadline(t time.Time) error {
	rec.fill.mu.Lock()
	defer rec.fill.mu.Unlock()
	if rec.fill.left && rec.mode != through || rec.behind {
		return nil
	}
	return http.NewResponseController(rec.fill.w).SetWriteDeadline(t)
}
