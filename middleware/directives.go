package middleware

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// never is the number of seconds that stands for all that don't fit: 2^31, RFC 9111 §1.2.2.
const never = 1 << 31 * time.Second

// directives are what Cache-Control says, or a field that takes its place. They are read leniently and understood
// strictly: wherever a value is malformed, repeated or in conflict with another, the most restrictive reading holds.
type directives struct {
	args     map[string][]string // by name in lower case: what follows it, as written, for each time that it occurs
	targeted bool                // of a targeted field: Expires doesn't count beside it, and its numbers aren't quoted
}

// parseCacheControl reads the lines of a Cache-Control field (RFC 9111 §5.2).
func parseCacheControl(lines []string) (d directives) {
	for _, line := range lines {
		elements, closed := split(line, ',')
		if !closed {
			d.add("no-store", "") // what the open string swallowed may have been a prohibition
		}
		for _, e := range elements {
			if name, rest := cutToken(e); name != "" {
				d.add(lower(name), rest)
			}
		}
	}
	return d
}

func (d *directives) add(name, arg string) {
	if d.args == nil {
		d.args = map[string][]string{}
	}
	d.args[name] = append(d.args[name], arg)
}

// has reports whether the directive is there, whatever its argument: the question to ask about prohibitions.
func (d directives) has(name string) bool { return len(d.args[name]) > 0 }

// allows reports whether the directive is there, and has no argument to cast doubt on it: the question about permissions.
func (d directives) allows(name string) bool {
	for _, arg := range d.args[name] {
		if arg != "" {
			return false
		}
	}
	return d.has(name)
}

// seconds returns the least time that the directive says. What isn't a number of seconds is 0.
func (d directives) seconds(name string) (least time.Duration, ok bool) {
	least = never
	for _, arg := range d.args[name] {
		least, ok = min(least, d.number(arg)), true
	}
	if !ok {
		return 0, false
	}
	return least, true
}

func (d directives) number(arg string) time.Duration {
	value, is := strings.CutPrefix(arg, "=")
	if !d.targeted {
		value = unquote(value)
	}
	if n, ok := deltaSeconds(value); is && ok {
		return n
	}
	return 0
}

// fields returns the header fields that a no-cache or private is about. It is about the whole response if it doesn't
// name them in a quoted string, or names what can't be a field.
func (d directives) fields(name string) (names []string, whole bool) {
	for _, arg := range d.args[name] {
		value, ok := strings.CutPrefix(arg, "=")
		listed := members([]string{unquote(value)})
		if !ok || !strings.HasPrefix(value, `"`) || len(listed) == 0 {
			whole = true
		}
		for _, field := range listed {
			whole = whole || !isToken(field)
			names = append(names, http.CanonicalHeaderKey(field))
		}
	}
	if whole {
		return nil, true
	}
	return names, false
}

// noCache reports whether the response may only be used after its handler was asked (RFC 9111 §5.2.2.4).
func (d directives) noCache() bool {
	_, whole := d.fields("no-cache")
	return whole
}

// private reports whether the response is for one user alone (RFC 9111 §5.2.2.7).
func (d directives) private() bool {
	_, whole := d.fields("private")
	return whole
}

// deltaSeconds reads a non-negative whole number of seconds (RFC 9111 §1.2.2).
func deltaSeconds(s string) (time.Duration, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil { // too large, as all are digits
		return never, true
	}
	return min(time.Duration(n)*time.Second, never), true
}
