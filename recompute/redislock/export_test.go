package redislock

import "time"

// Silence makes the hub ask itself sooner whether it can still hear.
func (h *Hub) Silence(d time.Duration) { h.silence = d }

// Encode and Decode are what a message goes through on its way.
func (m Message) Encode() string { return m.encode() }

// Decode reads a message.
func Decode(s string) (Message, bool) { return decode(s) }

// VotingHash is how a question of a quorum for a lease shows on the wire.
func VotingHash() string { return votingScript.Hash() }

// Need makes so many servers a majority.
func (q *Quorum) Need(n int) { q.need = n }

// Announce has a server announce the release of a lease.
func (q *Quorum) Announce(server int, name string) { q.released(server, name) }

// Announced is of how many leases announcements are remembered.
func (q *Quorum) Announced() int {
	q.announcements.mu.Lock()
	defer q.announcements.mu.Unlock()
	return len(q.announcements.heard)
}
