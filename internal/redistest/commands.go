package redistest

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
)

// patience is for an answer of the server.
const patience = 10 * time.Second

// Counter collects the commands that clients send to a server. It belongs to the goroutine of its test.
type Counter struct {
	t       testing.TB
	addr    string
	monitor net.Conn
	marker  string     // the argument of an ECHO: once it shows, so has everything that was executed before it
	seen    []string   // belongs to collect until it has ended
	ended   chan error // gets collect's end: nil when it saw the marker
	stopped bool
}

// Commands counts the commands that clients send to the server from now on, until Stop. It sees them through MONITOR, and so does
// not see what the server refused unexecuted (no permission, wrong number of arguments) nor administrative commands as CONFIG.
// Commands that a script runs are the server's own and do not count; nor does setting up a connection.
func Commands(t testing.TB, s *redisserver.Server) *Counter {
	t.Helper()
	c := &Counter{t: t, addr: s.Addr, marker: "redistest-" + rand.Text(), ended: make(chan error, 1)}
	monitor, r, err := send(c.addr, "MONITOR")
	if err != nil {
		t.Fatalf("redistest: MONITOR: %v", err)
	}
	c.monitor = monitor
	t.Cleanup(func() { _ = monitor.Close() }) // Stop may have closed it
	go c.collect(r)
	return c
}

// Stop ends the counting and returns the commands in the order of their execution, each as one line: the name in capitals, then the
// arguments, long ones cut. Every command is there whose answer had come when Stop was called. Stopping again gives the same again.
func (c *Counter) Stop() []string {
	c.t.Helper()
	if c.stopped {
		return c.seen
	}
	defer c.monitor.Close()
	echo, _, err := send(c.addr, "ECHO "+c.marker)
	if err != nil {
		c.t.Fatalf("redistest: the server is gone, and with it the count of its commands: %v", err)
	}
	defer echo.Close()
	_ = c.monitor.SetReadDeadline(time.Now().Add(patience)) // can't fail on an open connection
	if err := <-c.ended; err != nil {
		c.t.Fatalf("redistest: MONITOR ended before its time: %v", err)
	}
	c.stopped = true
	return c.seen
}

// collect reads what MONITOR shows until the marker, or until the connection is closed.
func (c *Counter) collect(r *bufio.Reader) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			c.ended <- err
			return
		}
		switch args := parse(line); {
		case len(args) == 2 && args[1] == c.marker:
			c.ended <- nil
			return
		case len(args) > 0 && !setsUp(args):
			c.seen = append(c.seen, show(args))
		}
	}
}

// send opens a connection for one inline command and reads the first line of its answer.
func send(addr, command string) (net.Conn, *bufio.Reader, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, nil, err
	}
	_ = c.SetDeadline(time.Now().Add(patience)) // can't fail on an open connection
	r := bufio.NewReader(c)
	_, err = io.WriteString(c, command+"\r\n")
	var line string
	if err == nil {
		line, err = r.ReadString('\n')
	}
	if err == nil && strings.HasPrefix(line, "-") {
		err = fmt.Errorf("server: %s", strings.TrimSpace(line[1:]))
	}
	if err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	_ = c.SetDeadline(time.Time{})
	return c, r, nil
}
