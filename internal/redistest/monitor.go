package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// longest is how much of an argument a line of Counter.Stop shows: enough for keys, not for values and scripts.
const longest = 100

// parse takes one line of MONITOR apart, which quotes as Go does:
//
//	1700000000.000001 [0 127.0.0.1:40000] "set" "key" "a \"quoted\" value"
//
// It returns nothing for a line that is no command of a client; those of scripts come from "[0 lua]".
func parse(line string) (args []string) {
	head, rest, _ := strings.Cut(strings.TrimSpace(line), "] ")
	if strings.HasSuffix(head, " lua") {
		return nil
	}
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil
		}
		arg, err := strconv.Unquote(quoted)
		if err != nil {
			return nil
		}
		args = append(args, arg)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	return args
}

// show makes one line of a command: its name in capitals, arguments quoted where needed, and cut where too long to read.
func show(args []string) string {
	words := []string{strings.ToUpper(args[0])}
	for _, arg := range args[1:] {
		more := ""
		if len(arg) > longest {
			arg, more = arg[:longest], fmt.Sprintf("…(%d more)", len(arg)-longest)
		}
		if arg == "" || strings.ContainsFunc(arg, special) {
			arg = strconv.Quote(arg)
		}
		words = append(words, arg+more)
	}
	return strings.Join(words, " ")
}

func special(r rune) bool {
	return r == '"' || r == unicode.ReplacementChar || !unicode.IsGraphic(r) || unicode.IsSpace(r)
}

// setsUp reports whether a command belongs to setting up a connection, or to finding a cluster's nodes. (AUTH and a few others are
// here for completeness: servers keep them from MONITOR.)
func setsUp(args []string) bool {
	switch strings.ToUpper(args[0]) {
	case "HELLO", "AUTH", "SELECT", "READONLY", "COMMAND", "CLUSTER":
		return true
	case "CLIENT":
		switch strings.ToUpper(args[1]) { // the server lets none pass without
		case "SETINFO", "SETNAME", "MAINT_NOTIFICATIONS", "ID":
			return true
		}
	}
	return false
}
