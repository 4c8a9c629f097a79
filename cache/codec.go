package cache

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// Codec turns values into bytes and back. Decode must refuse bytes that Encode of the same type can't have made, and
// return a value that shares no memory with data.
type Codec[V any] interface {
	Encode(v V) ([]byte, error)
	Decode(data []byte) (V, error)
}

// Msgpack is the default [Codec]. Unexported fields are not stored; a time.Time comes back in the local zone, equal
// by Equal; numbers in an interface come back in the smallest type that holds them; types of msgpack.RegisterExt need
// a Codec of their own. Since every caller gets the
// decoded form, the one who computed included, none of this differs between a miss and a hit.
type Msgpack[V any] struct{}

// Encode returns v as msgpack.
func (Msgpack[V]) Encode(v V) ([]byte, error) { return msgpack.Marshal(v) }

// Decode reads exactly one value. It walks through the bytes before it decodes them, so that no length they claim
// makes it allocate what they don't carry.
func (Msgpack[V]) Decode(data []byte) (v V, err error) {
	defer func() {
		if p := recover(); p != nil { // a map's key that can't be hashed, for one
			err = fmt.Errorf("cache: msgpack: %v", p)
		}
		if err != nil {
			var zero V
			v = zero // it may be half filled
		}
	}()
	if data, err = walk(data); err != nil {
		return v, err
	}
	r := readers.Get().(*bytes.Reader)
	defer readers.Put(r)
	r.Reset(data)
	d := msgpack.GetDecoder()
	defer msgpack.PutDecoder(d)
	d.Reset(r)
	err = d.Decode(&v)
	return v, err
}

var readers = sync.Pool{New: func() any { return new(bytes.Reader) }}
