package middleware

import (
	"bytes"
	"net/http"
	"strings"
	"time"
)

// wantsPart reports whether r asks for a part that the stored response can give (RFC 9110 §14.2). If not, Range is
// ignored and the whole is the answer.
func wantsPart(r *http.Request, status int, h http.Header) bool {
	asked := r.Header["Range"]
	return r.Method == http.MethodGet && status == http.StatusOK &&
		len(asked) == 1 && strings.HasPrefix(asked[0], "bytes=") && sameBytes(r.Header["If-Range"], h)
}

// sameBytes reports whether If-Range lets a part be put together with what the client has: without one, yes; else only
// if a strong validator says that it is of the same bytes (RFC 9110 §13.1.5).
func sameBytes(ifRange []string, h http.Header) bool {
	if len(ifRange) == 0 {
		return true
	}
	asked := strings.Trim(ifRange[0], space)
	if isTag(asked) {
		return len(ifRange) == 1 && !weak(asked) && asked == h.Get("Etag")
	}
	date, ok := parseDate(asked)
	modified, strong := strongDate(h)
	return ok && strong && len(ifRange) == 1 && date.Equal(modified)
}

// servePart answers with the parts of body that r asks for: 206, or 416 if there is none. h is the stored header, with
// what the answer has beside it. Ask wantsPart before, and notModified before that.
func servePart(w http.ResponseWriter, r *http.Request, h http.Header, body []byte) {
	setFields(w.Header(), h)
	w.Header().Del("Content-Length") // of the whole
	part := *r
	part.Header = http.Header{"Range": r.Header["Range"]} // the conditions have had their say
	http.ServeContent(w, &part, "", time.Time{}, bytes.NewReader(body))
}
