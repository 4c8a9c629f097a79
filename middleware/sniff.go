package middleware

import (
	"bytes"
	"net/http"
)

// sniffed is how many bytes of a body its type is guessed from.
const sniffed = 512

// untyped says whether the type of the response is to be guessed from its body, as net/http does.
func untyped(h http.Header) bool {
	_, said := h["Content-Type"]
	return !said && h.Get("Content-Encoding") == ""
}

// sniff guesses the type from what there is of the body: net/http keeps the first bytes back, too, until there are more, or
// a flush, or the end. It is the same for all who get the response. The caller holds rec.mu.
func (rec *recording) sniff() {
	r := &rec.response
	if untyped(r.Header) && len(r.Body) > 0 {
		r.Header.Set("Content-Type", http.DetectContentType(r.Body))
	}
}

// telling says whether more bytes would make no difference to the type: markup can't be told by whitespace, nor by half a tag.
func (r Response) telling() bool {
	if !untyped(r.Header) || len(r.Body) >= sniffed {
		return true
	}
	start := bytes.TrimLeft(r.Body, "\t\n\x0c\r ")
	return len(start) > 0 && (start[0] != '<' || http.DetectContentType(start) != "text/plain; charset=utf-8")
}
