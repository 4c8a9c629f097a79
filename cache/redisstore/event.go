package redisstore

import (
	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// The store's own kinds of message.
const (
	published redislock.Kind = 'P' // body: the schema, and the entry if it is small, else its stamp
	failed    redislock.Kind = 'F' // body: the schema, the time in 16 digits, the text of the error
	deleted   redislock.Kind = 'D' // no body
)

const schemaSize = 16

var kinds = map[redislock.Kind]cache.EventKind{
	published:          cache.Published,
	failed:             cache.Failed,
	deleted:            cache.Deleted,
	redislock.Released: cache.Released,
	redislock.Renewed:  cache.Renewed,
	redislock.Up:       cache.Connected,
	redislock.Down:     cache.Disconnected,
}

// event reads a message. Whatever it says of an entry is only as good as the stamp and the envelope prove it to be.
func (s *Store) event(m redislock.Message, err error) (cache.Event, bool) {
	kind, ok := kinds[m.Kind]
	e := cache.Event{Kind: kind, Key: cache.Key{Name: m.Name}, Err: err}
	if kind != cache.Published && kind != cache.Failed {
		return e, ok
	}
	if len(m.Body) < schemaSize {
		return e, false
	}
	e.Key.Schema = m.Body[:schemaSize]
	body, now := []byte(m.Body[schemaSize:]), s.clock.now()
	switch {
	case kind == cache.Failed && len(body) >= timeSize && now > 0:
		e.Entry.Age = since(digits(body[:timeSize]), now)
		e.Err = failure(string(body[timeSize:]))
	case kind == cache.Failed:
		e.Kind = cache.Released // a failure without a date is no more than a reason to look
	default:
		if _, published, ok := stamp(body); ok && published <= now { // else the clock has jumped: look
			e.Entry = entry(body, now)
			if len(e.Entry.Data) == 0 {
				e.Entry.Data = nil // it was too long to come along
			}
		}
	}
	return e, true
}
