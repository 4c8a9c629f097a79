package faultproxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection of a client and the one to the server that belongs to it.
type link struct {
	proxy          *Proxy
	client, server net.Conn

	frozen atomic.Bool // nothing passes in either direction
	mute   atomic.Bool // replies don't pass
	cut    atomic.Bool // the next reply closes the connection

	held atomic.Pointer[chan struct{}] // nothing passes until it is closed; nil: it does

	once sync.Once
	gone chan struct{} // closed when the proxy has closed the link
}

func (l *link) close() {
	l.once.Do(func() { close(l.gone) })
	_ = l.client.Close()
	_ = l.server.Close()
}

// hold keeps what is sent in either direction until release.
func (l *link) hold() {
	c := make(chan struct{})
	l.held.CompareAndSwap(nil, &c)
}

func (l *link) release() {
	if c := l.held.Swap(nil); c != nil {
		close(*c)
	}
}

// await returns when the link isn't held, and false if it was closed before.
func (l *link) await() bool {
	c := l.held.Load()
	if c == nil {
		return true
	}
	select {
	case <-*c:
		return true
	case <-l.gone:
		return false
	}
}

// requests hands commands to the server until the client has gone.
func (l *link) requests() {
	defer l.proxy.running.Done()
	defer l.hangUp()
	for r := bufio.NewReader(l.client); ; {
		command, err := read(r)
		if !l.await() || err != nil {
			return
		}
		switch fate := l.proxy.fate(command); fate.Do {
		case DropRequest:
			l.close()
			return
		case DropReply:
			l.cut.Store(true)
		case StallReply:
			l.mute.Store(true)
		case Answer:
			if fate.Ask != nil {
				fate.Say = fate.Ask(words(command))
			}
			if fate.Say != "" {
				_, _ = io.WriteString(l.client, fate.Say+"\r\n") // a client that has gone is the next read's business
				continue
			}
		case Delay:
			select {
			case <-time.After(fate.For):
			case <-l.gone:
				return
			}
		}
		if l.frozen.Load() {
			continue
		}
		if _, err := l.server.Write(command); err != nil {
			return
		}
	}
}

// hangUp tells the server that the client has gone, in the client's way, by the end of the stream: the server still applies what
// was sent before.
func (l *link) hangUp() {
	if !l.frozen.Load() {
		_ = l.server.(*net.TCPConn).CloseWrite() // fails where close was first
	}
}

// replies hands on what the server says until it has nothing more to say.
func (l *link) replies() {
	defer l.proxy.running.Done()
	defer l.proxy.exit(l)
	defer l.close()
	for chunk := make([]byte, 32<<10); ; {
		n, err := l.server.Read(chunk)
		switch {
		case !l.await():
			return
		case err != nil && l.frozen.Load(): // the client isn't told
			<-l.gone
			return
		case err != nil || l.cut.Load():
			return
		case l.frozen.Load() || l.mute.Load():
			continue
		}
		_, _ = l.client.Write(chunk[:n]) // a client that has gone is requests' business
	}
}

// read returns the next command as it was sent: an array of strings, or a line.
func read(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil || line[0] != '*' {
		return line, err
	}
	command := line
	for range size(line) {
		if line, err = r.ReadBytes('\n'); err != nil {
			return nil, err
		}
		arg := make([]byte, size(line)+2) // and the end of its line
		if _, err = io.ReadFull(r, arg); err != nil {
			return nil, err
		}
		command = append(append(command, line...), arg...)
	}
	return command, nil
}

// words takes a command apart.
func words(command []byte) (words []string) {
	r := bufio.NewReader(bytes.NewReader(command))
	head, _ := r.ReadBytes('\n')
	if head[0] != '*' {
		return strings.Fields(string(head))
	}
	for range size(head) {
		line, _ := r.ReadBytes('\n') // it is whole: it was read before
		word := make([]byte, size(line)+2)
		_, _ = io.ReadFull(r, word)
		words = append(words, string(word[:size(line)]))
	}
	return words
}

// size is the number in the head of an array or a string.
func size(head []byte) int {
	n, err := strconv.Atoi(string(bytes.TrimSpace(head[1:])))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
