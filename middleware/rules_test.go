package middleware_test

import (
	"net/http"
	"strings"
	"time"
)

// noon is when responses arrive.
var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// header makes a header of lines such as "Age: 3".
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		h.Add(name, strings.TrimSpace(value))
	}
	return h
}

// at writes a time that is so many seconds after noon as a date.
func at(seconds int) string {
	return noon.Add(time.Duration(seconds) * time.Second).Format(http.TimeFormat)
}
