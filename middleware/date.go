package middleware

import (
	"net/http"
	"strings"
	"time"
)

// dateLayouts are the three forms of a date in RFC 9110 §5.6.7. Package time lets RFC 850 name any zone; HTTP has GMT only.
var dateLayouts = []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// parseDate reads a date in any case. http.ParseTime also takes other zones, further spaces and one-digit hours:
// as an Expires with one of those is a mistake, and a mistake means stale, this is stricter.
func parseDate(value string) (time.Time, bool) {
	value = strings.ToUpper(strings.Trim(value, space))
	for _, layout := range dateLayouts {
		t, err := time.Parse(layout, value)
		if err != nil {
			continue
		}
		// The day of the week is redundant, and may be wrong.
		_, want, _ := strings.Cut(t.Format(layout), " ")
		_, got, _ := strings.Cut(value, " ")
		return t, strings.EqualFold(want, got)
	}
	return time.Time{}, false
}

// dateOf returns the date in a field that has one.
func dateOf(h http.Header, field string) (time.Time, bool) {
	return parseDate(h.Get(field))
}
