package redislock

import (
	"strconv"
	"strings"
)

// Message is what processes tell each other on a [Hub]: something happened to a name.
type Message struct {
	Kind Kind
	Name string
	Body string // kinds of others' making may carry more
}

// Kind says what happened. Leases use the kinds below; a store adds its own.
type Kind byte

const (
	Released Kind = 'R' // the lease has ended, the name is free
	Renewed  Kind = 'H' // its holder is alive
	hello    Kind = '?' // a hub asks itself whether it can hear

	// Up and Down are never sent: a hub tells its listeners that from now on it hears everything, or no longer.
	Up   Kind = '+'
	Down Kind = '-'
)

// Head returns the encoded message up to its body, for scripts that append one.
func (m Message) Head() string {
	return string([]byte{byte(m.Kind)}) + strconv.Itoa(len(m.Name)) + ":" + m.Name
}

func (m Message) encode() string { return m.Head() + m.Body }

// decode reads a message. Anyone may publish on a channel, so what does not parse is nothing.
func decode(s string) (Message, bool) {
	if s == "" {
		return Message{}, false
	}
	digits, rest, ok := strings.Cut(s[1:], ":")
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil || n > uint64(len(rest)) {
		return Message{}, false
	}
	return Message{Kind: Kind(s[0]), Name: rest[:n], Body: rest[n:]}, true
}
