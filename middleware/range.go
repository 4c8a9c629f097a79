package middleware

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

const mostRanges = 16 // of one request: each costs the client a few bytes, and the server a header

// byteRange is one range of RFC 9110 §14.1.2 that has a meaning: no suffix of nothing, and no number beyond int64.
var byteRange = regexp.MustCompile(`^([0-9]{1,18}-[0-9]{0,18}|-0*[1-9][0-9]{0,17})$`)

// wantsPart reports whether r asks for parts that the stored response can give, which has so many bytes. If not, Range
// is ignored, as any server may (RFC 9110 §14.2), and the whole is the answer.
func wantsPart(r *http.Request, status int, h http.Header, size int) bool {
	asked := r.Header["Range"]
	return r.Method == http.MethodGet && status == http.StatusOK && size > 0 &&
		len(asked) == 1 && byteRanges(asked[0]) && sameBytes(r.Header["If-Range"], h)
}

// byteRanges reports whether the value is one that http.ServeContent reads as RFC 9110 says.
func byteRanges(value string) bool {
	list, ok := strings.CutPrefix(value, "bytes=")
	ranges := members([]string{list})
	malformed := func(one string) bool { return !byteRange.MatchString(one) }
	return ok && 0 < len(ranges) && len(ranges) <= mostRanges && !slices.ContainsFunc(ranges, malformed)
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
	part := *r
	part.Header = http.Header{"Range": r.Header["Range"]} // the conditions have had their say
	http.ServeContent(w, &part, "", time.Time{}, bytes.NewReader(body))
}
