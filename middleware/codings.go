package middleware

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var weight = regexp.MustCompile(`^(0(\.[0-9]{0,3})?|1(\.0{0,3})?)$`) // RFC 9110 §12.4.2

// acceptedCodings reduces an Accept-Encoding to the set of what it accepts, in order. Browsers write the same set in
// many ways, and each would have a copy of its own. Weights other than 0 are only wishes. ok is false if it isn't
// well-formed or contradicts itself.
func acceptedCodings(lines []string) (set string, ok bool) {
	accepts := map[string]bool{}
	for _, member := range members(lines) {
		coding, wanted, ok := acceptedCoding(member)
		if before, known := accepts[coding]; !ok || known && before != wanted {
			return "", false
		}
		accepts[coding] = wanted
	}
	return strings.Join(slices.Sorted(maps.Keys(meaning(accepts))), ","), true
}

// meaning keeps what makes a difference. Without being named, identity is accepted and all others aren't; * is about
// all that aren't named (RFC 9110 §12.5.3).
func meaning(accepts map[string]bool) map[string]bool {
	rest, hasRest := accepts["*"]
	identity, named := accepts["identity"]
	kept := map[string]bool{}
	for coding, wanted := range accepts {
		switch {
		case coding == "identity":
		case wanted:
			kept[coding] = true
		case rest:
			kept[coding+";q=0"] = true
		}
	}
	if named && !identity || !named && hasRest && !rest {
		kept["identity;q=0"] = true
	}
	return kept
}

// acceptedCoding reads a member of Accept-Encoding.
func acceptedCoding(member string) (coding string, wanted, ok bool) {
	parts, _ := split(member, ';')
	coding = lower(parts[0])
	switch len(parts) {
	case 1:
		return coding, true, isToken(coding)
	case 2:
		q, is := strings.CutPrefix(lower(parts[1]), "q=")
		return coding, strings.Trim(q, "0.") != "", is && isToken(coding) && weight.MatchString(q)
	default:
		return "", false, false
	}
}
