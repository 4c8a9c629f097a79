package middleware

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// observer is told of a response's header before it is written, and else lets everything through.
type observer struct {
	http.ResponseWriter
	before func(status int, h http.Header)
	told   bool
}

// serve has the handler answer. One that writes nothing has its header written after it.
func (o *observer) serve(next http.Handler, r *http.Request) {
	next.ServeHTTP(o, r)
	o.tell(http.StatusOK)
}

func (o *observer) tell(status int) {
	if !o.told && (status >= 200 || status == http.StatusSwitchingProtocols) {
		o.told = true
		o.before(status, o.Header())
	}
}

func (o *observer) WriteHeader(status int) {
	o.tell(status)
	o.ResponseWriter.WriteHeader(status)
}

func (o *observer) Write(b []byte) (int, error) {
	o.tell(http.StatusOK)
	return o.ResponseWriter.Write(b)
}

// ReadFrom lets a file be sent without a copy.
func (o *observer) ReadFrom(src io.Reader) (int64, error) {
	o.tell(http.StatusOK)
	return io.Copy(o.ResponseWriter, src)
}

func (o *observer) Flush() { _ = o.FlushError() }

func (o *observer) FlushError() error {
	o.tell(http.StatusOK)
	return http.NewResponseController(o.ResponseWriter).Flush()
}

func (o *observer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	o.told = true // it writes its own
	return http.NewResponseController(o.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (o *observer) Unwrap() http.ResponseWriter { return o.ResponseWriter }
