package middleware

import "strings"

const space = " \t" // what HTTP calls optional whitespace

// split cuts a field's value at sep, except inside quoted strings, and trims what it cut. Empty elements are kept.
// It reports whether the last quoted string was closed: if not, it may have swallowed what was meant as elements.
func split(value string, sep byte) (elements []string, closed bool) {
	start, quoted := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == sep && !quoted:
			elements = append(elements, strings.Trim(value[start:i], space))
			start = i + 1
		}
	}
	return append(elements, strings.Trim(value[start:], space)), !quoted
}

// members returns the members of a list that may have several lines. Empty elements aren't members.
func members(lines []string) (all []string) {
	for _, line := range lines {
		elements, _ := split(line, ',')
		for _, e := range elements {
			if e != "" {
				all = append(all, e)
			}
		}
	}
	return all
}

// cutToken returns the token that s begins with, and what follows it.
func cutToken(s string) (token, rest string) {
	for i := range len(s) {
		if !tokenByte(s[i]) {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

func isToken(s string) bool {
	token, rest := cutToken(s)
	return token != "" && rest == ""
}

// tokenByte is tchar of RFC 9110 §5.6.2.
func tokenByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	default:
		return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
	}
}

// unquote returns what a quoted string says, and anything else as it is.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// lower is strings.ToLower for ASCII alone, byte by byte: outside it no two names become one.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
