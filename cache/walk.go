package cache

import (
	"encoding/binary"
	"errors"
)

var (
	errShort    = errors.New("cache: msgpack: fewer bytes than announced")
	errTrailing = errors.New("cache: msgpack: bytes after the value")
	errUnknown  = errors.New("cache: msgpack: no such type")
	errDeep     = errors.New("cache: msgpack: nested too deep")
)

// deepest is how far values may be nested. The decoder takes stack for each level, and a stack that overflows ends the
// process.
const deepest = 10_000

// walk checks that data is exactly one msgpack value that carries all that it announces, and returns it in a form that
// the decoder reads as walk does. It allocates next to nothing.
func walk(data []byte) ([]byte, error) {
	var times []int
	left := append(make([]uint64, 0, 16), 1) // values to come, by depth
	at := 0
	for len(left) > 0 {
		top := len(left) - 1
		if left[top] == 0 {
			left = left[:top]
			continue
		}
		left[top]--
		inner, size, err := head(data[at:])
		switch {
		case err != nil:
			return nil, err
		case size > uint64(len(data)-at):
			return nil, errShort
		case inner > 0 && len(left) == deepest:
			return nil, errDeep
		case inner > 0:
			left = append(left, inner)
		case extension(data[at]):
			ambiguous, err := checkTime(data[at : at+int(size)])
			if err != nil {
				return nil, err
			}
			if ambiguous {
				times = append(times, at)
			}
		}
		at += int(size)
	}
	if at < len(data) {
		return nil, errTrailing
	}
	return longTimes(data, times), nil
}

// head returns how many values are inside of the one that data begins with, and how many bytes it has besides those.
func head(data []byte) (inner, size uint64, err error) {
	if len(data) == 0 {
		return 0, 0, errShort
	}
	switch c := data[0]; {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3: // small numbers, nil, booleans
		return 0, 1, nil
	case c <= 0x8f: // small map
		return 2 * uint64(c&0x0f), 1, nil
	case c <= 0x9f: // small array
		return uint64(c & 0x0f), 1, nil
	case c <= 0xbf: // small string
		return 0, 1 + uint64(c&0x1f), nil
	case c == 0xca, c == 0xcb: // float
		return 0, 1 + 4<<(c-0xca), nil
	case c >= 0xcc && c <= 0xd3: // integer
		return 0, 1 + 1<<(c&3), nil
	case c >= 0xd4 && c <= 0xd8: // extension of fixed size
		return 0, 2 + 1<<(c-0xd4), nil
	}
	return long(data)
}

// long is head for what has its length in the next bytes.
func long(data []byte) (inner, size uint64, err error) {
	c := data[0]
	width := 1
	switch c {
	case 0xc5, 0xc8, 0xda, 0xdc, 0xde:
		width = 2
	case 0xc6, 0xc9, 0xdb, 0xdd, 0xdf:
		width = 4
	}
	if len(data) < 1+width {
		return 0, 0, errShort
	}
	var n uint64
	for _, b := range data[1 : 1+width] {
		n = n<<8 | uint64(b)
	}
	size = 1 + uint64(width)
	switch c {
	case 0xc4, 0xc5, 0xc6, 0xd9, 0xda, 0xdb: // bytes, string
		return 0, size + n, nil
	case 0xc7, 0xc8, 0xc9: // extension
		return 0, size + 1 + n, nil
	case 0xdc, 0xdd: // array
		return n, size, nil
	case 0xde, 0xdf: // map
		return 2 * n, size, nil
	}
	return 0, 0, errUnknown
}

func extension(c byte) bool { return c >= 0xc7 && c <= 0xc9 || c >= 0xd4 && c <= 0xd8 }

// The decoder, where it expects a map, skips the head of an extension and takes its payload for the map, which nobody
// has checked: ten bytes can make it allocate gigabytes. So the only extension is the time, and only in the form of 12
// bytes (after head and type: nanoseconds, seconds) that can't be taken for a map. The shorter forms are made so.
const (
	time32, time64, time96 = "\xd6\xff", "\xd7\xff", "\xc7\x0c\xff"

	lastNano = 999_999_999
)

// checkTime says whether a time could be taken for a map.
func checkTime(ext []byte) (bool, error) {
	switch {
	case string(ext[:2]) == time32:
		return mapHead(ext[2]), nil
	case string(ext[:2]) == time64 && binary.BigEndian.Uint64(ext[2:])>>34 <= lastNano:
		return mapHead(ext[2]), nil
	case len(ext) == 15 && string(ext[:3]) == time96 && binary.BigEndian.Uint32(ext[3:]) <= lastNano:
		return false, nil
	}
	return false, errUnknown
}

func mapHead(c byte) bool { return c >= 0x80 && c <= 0x8f || c == 0xde || c == 0xdf }

// longTimes returns data with the times at those places in their longest form.
func longTimes(data []byte, at []int) []byte {
	if len(at) == 0 {
		return data
	}
	long := make([]byte, 0, len(data)+9*len(at))
	done := 0
	for _, i := range at {
		long = append(append(long, data[done:i]...), time96...)
		nano, second := uint64(0), uint64(0)
		if data[i] == time32[0] {
			second, done = uint64(binary.BigEndian.Uint32(data[i+2:])), i+6
		} else {
			both := binary.BigEndian.Uint64(data[i+2:])
			nano, second, done = both>>34, both&(1<<34-1), i+10
		}
		long = binary.BigEndian.AppendUint32(long, uint32(nano))
		long = binary.BigEndian.AppendUint64(long, second)
	}
	return append(long, data[done:]...)
}
