package redisstore

import (
	"crypto/sha1" //nolint:gosec // a checksum, which the server can compute too
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
)

// A stamp stands before the envelope: 16 digits of the fence, 16 of the time of publication (µs on the server's
// clock), and the first 8 hexadecimal digits of the SHA-1 of those, since the envelope's checksum was made before.
const (
	timeSize  = 16
	stampSize = 16 + timeSize + 8
	ageless   = math.MaxInt64 / 2 // the age of what has no stamp: older than anything, with room to grow
)

// entry splits what is stored, without copying it; now is the time on the server's clock. Bytes without a stamp are given
// on as they are: the cache finds out what they are. Even an envelope is of no use without one.
func entry(data []byte, now int64) cache.Entry {
	fence, published, ok := stamp(data)
	if !ok {
		return cache.Entry{Data: data, Age: ageless}
	}
	return cache.Entry{Data: data[stampSize:], Fence: cache.Fence(fence), Age: since(published, now)}
}

func stamp(data []byte) (fence, published int64, ok bool) {
	if len(data) < stampSize {
		return 0, 0, false
	}
	var sum [8]byte
	whole := sha1.Sum(data[:32]) //nolint:gosec // as above
	hex.Encode(sum[:], whole[:4])
	fence, published = digits(data[:16]), digits(data[16:32])
	return fence, published, string(sum[:]) == string(data[32:stampSize]) && fence > 0 && published > 0
}

// digits returns the number that 16 digits make, 0 if they are none.
func digits(data []byte) (n int64) {
	for _, d := range data {
		if d < '0' || d > '9' {
			return 0
		}
		n = 10*n + int64(d-'0')
	}
	return n
}

// number reads an integer that a script returned as text (Lua prints large ones in 14 digits otherwise).
func number(reply any) int64 {
	s, _ := reply.(string)
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// since returns the time between two readings of the server's clock.
func since(then, now int64) time.Duration { return time.Duration(now-then) * time.Microsecond }
