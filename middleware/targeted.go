package middleware

import (
	"net/http"
	"strconv"

	"github.com/dunglas/httpsfv"
)

// effective returns the directives that count for this cache: those of the first targeted field (RFC 9213) that is
// there, can be read and isn't empty, else those of Cache-Control.
func effective(h http.Header, targeted []string) directives {
	for _, field := range targeted {
		if d, ok := parseTargeted(h.Values(field)); ok {
			return d
		}
	}
	return parseCacheControl(h["Cache-Control"])
}

// parseTargeted reads a targeted field, which is a dictionary of structured fields. One that isn't counts as absent.
func parseTargeted(lines []string) (d directives, ok bool) {
	if len(lines) == 0 {
		return d, false
	}
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil || len(dictionary.Names()) == 0 {
		return d, false
	}
	d.targeted = true
	for _, name := range dictionary.Names() {
		member, _ := dictionary.Get(name)
		d.add(name, argument(member))
	}
	return d, true
}

// argument writes a member's value as it would stand in Cache-Control. A type that no directive has becomes
// an argument that no directive understands.
func argument(m httpsfv.Member) string {
	item, _ := m.(httpsfv.Item)
	switch v := item.Value.(type) {
	case bool:
		if v {
			return ""
		}
	case int64:
		return "=" + strconv.FormatInt(v, 10)
	case string:
		return `="` + v + `"`
	}
	return "=?"
}
