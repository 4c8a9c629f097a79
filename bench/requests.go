package main

import (
	"bytes"
	"strconv"
	"strings"
)

// requests reads the client's side of a RESP stream, in pieces of any size, and reports each request's name.
type requests struct {
	sent func(name string)

	line []byte // a header line, "*3" or "$5", as far as it has come
	name []byte // the first argument, as far as it has come
	args int    // arguments that the current request still has
	skip int    // bytes that the current argument still has, with its CRLF
	head bool   // the current argument is the first
}

func (r *requests) feed(b []byte) {
	for len(b) > 0 {
		if r.skip > 0 {
			b = r.argument(b)
		} else {
			b = r.header(b)
		}
	}
}

// header takes bytes of a header line and returns the rest.
func (r *requests) header(b []byte) []byte {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		r.line = append(r.line, b...)
		return nil
	}
	line := strings.TrimSpace(string(append(r.line, b[:i]...)))
	r.line = r.line[:0]
	if len(line) < 2 {
		return b[i+1:]
	}
	n, err := strconv.Atoi(line[1:])
	switch {
	case err != nil:
	case line[0] == '*':
		r.args, r.head = n, true
	case line[0] == '$' && r.args > 0:
		r.skip = n + len("\r\n")
	}
	return b[i+1:]
}

// argument takes bytes of an argument and returns the rest.
func (r *requests) argument(b []byte) []byte {
	n := min(r.skip, len(b))
	if r.head {
		r.name = append(r.name, b[:n]...)
	}
	if r.skip -= n; r.skip == 0 {
		if r.head {
			r.sent(strings.ToLower(strings.TrimSpace(string(r.name))))
		}
		r.name, r.head = r.name[:0], false
		r.args--
	}
	return b[n:]
}
