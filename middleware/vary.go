package middleware

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// varies returns the request fields that the response depends on, sorted, each once. all: it depends on more than that,
// so no other request can be known to get the same (RFC 9111 §4.1). What can't be a field's name counts as such.
func varies(h http.Header) (fields []string, all bool) {
	for _, field := range members(h["Vary"]) {
		if field == "*" || !isToken(field) {
			return nil, true
		}
		fields = append(fields, http.CanonicalHeaderKey(field))
	}
	slices.Sort(fields)
	return slices.Compact(fields), false
}

// variant writes what a request says in some fields: the same for two requests only if they mean the same by each of
// them. A field that isn't there differs from one that is empty.
func variant(fields []string, h http.Header) string {
	var b []byte
	for _, field := range fields {
		field = http.CanonicalHeaderKey(field)
		b = appendPart(b, field)
		if lines := h[field]; len(lines) == 0 {
			b = append(b, '-')
		} else {
			b = appendPart(b, normalised(field, lines))
		}
	}
	return string(b)
}

// appendPart writes s so that where it ends is beyond doubt: its length is before it.
func appendPart(b []byte, s string) []byte {
	b = strconv.AppendInt(b, int64(len(s)), 10)
	b = append(b, ':')
	b = append(b, s...)
	return append(b, ',')
}

func normalised(field string, lines []string) string {
	switch field {
	case "Accept-Encoding":
		if codings, ok := acceptedCodings(lines); ok {
			return codings
		}
	case "Accept-Language":
		return lower(tight(tight(strings.Join(lines, ","), ','), ';'))
	}
	return "=" + tight(strings.Join(lines, ","), ',') // no list of codings begins so
}

// tight removes the whitespace around the separators that aren't in a quoted string: several lines are one list
// (RFC 9110 §5.3), and more than that isn't known of a field in general.
func tight(value string, sep byte) string {
	elements, _ := split(value, sep)
	return strings.Join(elements, string(sep))
}
