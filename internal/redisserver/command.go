package redisserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// command sends one inline command and returns the reply, a status or a bulk.
func (s *Server) command(format string, args ...any) (reply string, err error) {
	command := fmt.Sprintf(format, args...)
	err = s.send(command, func(line string, r *bufio.Reader) error {
		switch {
		case line == "" || line[0] == '-':
			return fmt.Errorf("%q", line)
		case line[0] != '$':
			reply = line[1:]
			return nil
		}
		size, err := strconv.Atoi(line[1:])
		body := make([]byte, max(size, 0))
		if err == nil {
			_, err = io.ReadFull(r, body)
		}
		reply = string(body)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("redisserver: %s on %s: %w", command, s.Addr, err)
	}
	return reply, nil
}

// line sends one inline command and returns the first line of the reply, even if that is an error.
func (s *Server) line(command string) (reply string, err error) {
	err = s.send(command, func(line string, _ *bufio.Reader) error { reply = line; return nil })
	return reply, err
}

func (s *Server) send(command string, read func(line string, rest *bufio.Reader) error) error {
	c, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience)) // can't fail on an open connection; if it did, the reads would tell
	r := bufio.NewReader(c)
	return read(ask(c, r, command), r)
}

// says reports whether the reply to a command holds all of the texts.
func (s *Server) says(command string, texts ...string) bool {
	reply, err := s.command("%s", command)
	for _, text := range texts {
		if err != nil || !strings.Contains(reply, text) {
			return false
		}
	}
	return err == nil
}

// eventually waits until ok, for as long as a set-up of several servers may take.
func eventually(what string, ok func() bool) error {
	const patience = 30 * time.Second
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return nil
		}
	}
	return fmt.Errorf("redisserver: %s: not within %v", what, patience)
}
