package redislock

import "time"

// Silence makes the hub ask itself sooner whether it can still hear.
func (h *Hub) Silence(d time.Duration) { h.silence = d }

// Encode and Decode are what a message goes through on its way.
func (m Message) Encode() string { return m.encode() }

// Decode reads a message.
func Decode(s string) (Message, bool) { return decode(s) }
