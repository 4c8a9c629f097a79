package cache

import "encoding/binary"

// What tests look at from outside: the maps that must be empty when nothing is under way.

func (c *Cache[V]) InFlight() int { return c.runs.InFlight() }

func (c *Cache[V]) Waiting() int {
	c.board.mu.Lock()
	defer c.board.mu.Unlock()
	return len(c.board.waiting)
}

func (c *Cache[V]) Reading() int {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	return len(c.reads.turns)
}

func (c *Cache[V]) Failing() int {
	c.failures.mu.Lock()
	defer c.failures.mu.Unlock()
	return len(c.failures.names)
}

func (m *Memory) Names() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.names)
}

// HeaderSize is how many bytes of an envelope come before the value.
const HeaderSize = headerSize

// Forge makes the length and the checksum of an envelope right, whatever else is in it.
func Forge(b []byte) []byte {
	if len(b) >= headerSize {
		binary.BigEndian.PutUint32(b[77:], uint32(len(b)-headerSize))
	}
	return ForgeSum(b)
}

// ForgeSum makes the checksum of an envelope right.
func ForgeSum(b []byte) []byte {
	if len(b) >= headerSize {
		binary.BigEndian.PutUint32(b[81:], checksum(b))
	}
	return b
}

// SchemaOf returns the schema of a cache's keys.
func (c *Cache[V]) SchemaOf() string { return c.shape }

// NameOf returns where a key's entry is.
func NameOf(key string) string { return nameOf(key) }

// Near returns how much is kept of last known values.
func (c *Cache[V]) Near() (bytes, entries int) {
	c.near.entries.CleanUp()
	return int(c.near.entries.WeightedSize()), c.near.entries.EstimatedSize()
}
