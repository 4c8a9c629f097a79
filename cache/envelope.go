package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/bellwether-cache/bellwether/stale"
)

// An envelope is a header of fixed size and the encoded value. Numbers are big-endian.
//
//	 0  magic      4   "BWE" and the version of this layout
//	 4  flags      1   1: negative answer, no value follows
//	 5  name      16   SHA-256 of the name, shortened
//	21  schema    16   the type of the value
//	37  windows   32   Fresh (spread), WhileRevalidate, IfError, Keep in ns
//	69  cost       8   of the computation in ns
//	77  length     4   of the value
//	81  checksum   4   CRC-32C of all other bytes
//	85  value
const (
	magic      = "BWE\x02"
	headerSize = 85
	flagAbsent = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// envelope is what an entry says besides its place and time.
type envelope struct {
	absent  bool
	windows stale.Policy // Fresh, WhileRevalidate, IfError and Keep
	cost    time.Duration
	value   []byte
}

func (e envelope) seal(key Key) []byte {
	b := make([]byte, headerSize, headerSize+len(e.value))
	copy(b, magic)
	if e.absent {
		b[4] = flagAbsent
	}
	name := digest(key.Name)
	copy(b[5:21], name[:])
	copy(b[21:37], key.Schema)
	binary.BigEndian.PutUint64(b[37:], uint64(e.windows.Fresh))
	binary.BigEndian.PutUint64(b[45:], uint64(e.windows.WhileRevalidate))
	binary.BigEndian.PutUint64(b[53:], uint64(e.windows.IfError))
	binary.BigEndian.PutUint64(b[61:], uint64(e.windows.Keep))
	binary.BigEndian.PutUint64(b[69:], uint64(e.cost))
	binary.BigEndian.PutUint32(b[77:], uint32(len(e.value)))
	b = append(b, e.value...)
	binary.BigEndian.PutUint32(b[81:], checksum(b))
	return b
}

var (
	errForeign  = errors.New("cache: not an entry, or of another version")
	errLength   = errors.New("cache: an entry of the wrong length")
	errChecksum = errors.New("cache: an entry with a wrong checksum")
	errMixedUp  = errors.New("cache: an entry of another key")
	errWindows  = errors.New("cache: an entry with impossible times")
)

// open checks all that seal wrote.
func open(key Key, b []byte) (envelope, error) {
	switch {
	case len(b) < headerSize || string(b[:4]) != magic || b[4] > flagAbsent:
		return envelope{}, errForeign
	case uint64(binary.BigEndian.Uint32(b[77:])) != uint64(len(b)-headerSize):
		return envelope{}, errLength
	case binary.BigEndian.Uint32(b[81:]) != checksum(b):
		return envelope{}, errChecksum
	}
	if name := digest(key.Name); string(b[5:21]) != string(name[:]) || string(b[21:37]) != key.Schema {
		return envelope{}, errMixedUp
	}
	e := envelope{
		absent: b[4] == flagAbsent,
		windows: stale.Policy{
			Fresh:           time.Duration(binary.BigEndian.Uint64(b[37:])),
			WhileRevalidate: time.Duration(binary.BigEndian.Uint64(b[45:])),
			IfError:         time.Duration(binary.BigEndian.Uint64(b[53:])),
			Keep:            time.Duration(binary.BigEndian.Uint64(b[61:])),
		},
		cost:  time.Duration(binary.BigEndian.Uint64(b[69:])),
		value: b[headerSize:],
	}
	if w := e.windows; w.Fresh < 0 || w.WhileRevalidate < 0 || w.IfError < 0 || w.Keep < 0 || w.Retain() == 0 || e.cost < 0 {
		return envelope{}, errWindows
	}
	return e, nil
}

// digest returns the 16 bytes that stand for a name.
func digest(name string) [16]byte {
	sum := sha256.Sum256([]byte(name))
	return [16]byte(sum[:16])
}

func checksum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:81])
	return crc32.Update(sum, castagnoli, b[headerSize:])
}
