package middleware

import (
	"encoding/binary"
	"errors"
	"net/http"
	"time"
)

// A stored response, in format 1: a byte that says so; Status, Age, Fresh, WhileRevalidate as varints; the texts Generation
// and Vary; the fields of Header; Body. A text has its length before it, and whatever there are several of their number.
const format = 1

// mostExpected is for how many fields there is room before they are read.
const mostExpected = 64

var errFormat = errors.New("middleware: these are not the bytes of a response")

// MarshalBinary returns the response as it is stored.
func (r Response) MarshalBinary() ([]byte, error) {
	e := encoder{b: make([]byte, 0, 512+len(r.Body))}
	e.b = append(e.b, format)
	for _, n := range [...]int64{int64(r.Status), int64(r.Age), int64(r.Fresh), int64(r.WhileRevalidate)} {
		e.b = binary.AppendVarint(e.b, n)
	}
	e.text(r.Generation)
	e.texts(r.Vary)
	e.number(len(r.Header))
	for field, lines := range r.Header {
		e.text(field)
		e.texts(lines)
	}
	e.number(len(r.Body))
	return append(e.b, r.Body...), nil
}

type encoder struct{ b []byte }

func (e *encoder) number(n int) { e.b = binary.AppendUvarint(e.b, uint64(n)) }

func (e *encoder) text(s string) {
	e.number(len(s))
	e.b = append(e.b, s...)
}

func (e *encoder) texts(all []string) {
	e.number(len(all))
	for _, s := range all {
		e.text(s)
	}
}

// UnmarshalBinary reads what MarshalBinary wrote, and refuses anything else.
func (r *Response) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || data[0] != format {
		return errFormat
	}
	d := decoder{left: string(data[1:])} // one copy, of which all texts are parts
	r.Status = int(d.signed())
	r.Age, r.Fresh, r.WhileRevalidate = time.Duration(d.signed()), time.Duration(d.signed()), time.Duration(d.signed())
	r.Generation = d.text()
	r.Vary = d.texts(nil)
	fields := d.number()
	r.Header = make(http.Header, min(fields, mostExpected)) // the number is only a claim
	lines := make([]string, 0, min(fields, mostExpected))   // most have one
	for range fields {
		field := d.text()
		start := len(lines)
		lines = d.texts(lines)
		r.Header[field] = lines[start:len(lines):len(lines)]
	}
	size := d.number()
	if d.bad || size != len(d.left) {
		return errFormat
	}
	r.Body = append(make([]byte, 0, size), data[len(data)-size:]...)
	if !r.isSignpost() && !r.whole() {
		return errFormat
	}
	return nil
}

// whole says whether the response can be served as it is: one that can't is to be made anew, not kept until it runs out.
func (r Response) whole() bool {
	n := declared(r.Header)
	return r.usable() && (n < 0 || !bodied(r.Status) || n == int64(len(r.Body)))
}

type decoder struct {
	left string
	bad  bool
}

// signed reads a varint, as binary.Varint does from bytes.
func (d *decoder) signed() int64 {
	u := d.unsigned()
	n := int64(u >> 1)
	if u&1 != 0 {
		n = ^n
	}
	return n
}

func (d *decoder) unsigned() (u uint64) {
	for i := 0; i < len(d.left) && i < binary.MaxVarintLen64; i++ {
		c := d.left[i]
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.left = d.left[i+1:]
			return u
		}
	}
	d.bad, d.left = true, ""
	return 0
}

// number reads how many there are of what takes a byte at least.
func (d *decoder) number() int {
	n := d.unsigned()
	if n > uint64(len(d.left)) {
		d.bad, d.left, n = true, "", 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.number()
	s := d.left[:n]
	d.left = d.left[n:]
	return s
}

func (d *decoder) texts(to []string) []string {
	for range d.number() {
		to = append(to, d.text())
	}
	return to
}
