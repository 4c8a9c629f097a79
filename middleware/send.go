package middleware

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"
)

// noAge is that of a response that comes from the handler.
const noAge = -1

// send answers with a whole response, or with what the client asked for of it.
func (x *exchange) send(r Response, age time.Duration, how report) {
	h := x.w.Header()
	status, fields, part := r.Status, r.Header, false
	switch {
	case asksIf(x.r.Header) && notModified(x.r.Header, r.Status, r.Header):
		status, fields = http.StatusNotModified, headersOf304(r.Header)
	case len(x.r.Header["Range"]) > 0:
		part = wantsPart(x.r, r.Status, r.Header, len(r.Body))
	}
	put(h, fields)
	if age >= 0 {
		h["Age"] = []string{strconv.FormatInt(int64(age/time.Second), 10)}
	}
	x.status(h, how)
	if part {
		servePart(x.w, x.r, nil, r.Body)
		return
	}
	x.w.WriteHeader(status)
	if x.r.Method != http.MethodHead && bodied(status) {
		_, _ = x.w.Write(r.Body) // an error is the client's
	}
}

// asksIf says whether the request may be answered with a 304.
func asksIf(h http.Header) bool { return len(h["If-None-Match"])+len(h["If-Modified-Since"]) > 0 }

// put puts the handler's fields into the header that goes to the client, in place of those of the same name. Only in
// Vary do those of outer handlers count too.
func put(to, from http.Header) {
	size := 0
	for _, lines := range from {
		size += len(lines)
	}
	all := make([]string, 0, size)
	for field, lines := range from {
		start := len(all)
		all = append(all, lines...)
		lines = all[start:len(all):len(all)]
		if outer := to["Vary"]; field == "Vary" && len(outer) > 0 {
			lines = append(outer, lines...)
		}
		to[field] = lines
	}
}

// bodied says whether responses with the status have a body.
func bodied(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// declared is the Content-Length, -1 if the header has none that is a number.
func declared(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// tagOf returns a strong entity tag: of the bytes, and of how they are encoded.
func tagOf(r Response) string {
	sum := sha256.Sum256(append(appendPart(nil, r.Header.Get("Content-Encoding")), r.Body...))
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}
