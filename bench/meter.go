package main

import (
	"context"
	"maps"
	"net"
	"sync"
	"syscall"
	"time"
)

// How commands are counted, as the report says it.
const counting = "requests written to the sockets by the replicas' clients, SUBSCRIBE and PING included, connection set-up (HELLO, AUTH, SELECT, CLIENT) aside"

// Meter counts the commands that clients send, on the wire. A hook of go-redis would not see SUBSCRIBE and retries;
// the server's own statistics would add what scripts call.
type Meter struct {
	mu     sync.Mutex
	byName map[string]int
}

// dial is the Dialer of a client whose commands are counted.
func (m *Meter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn, requests: requests{sent: m.count}}, nil
}

func (m *Meter) count(name string) {
	switch name {
	case "hello", "auth", "select", "client":
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName == nil {
		m.byName = map[string]int{}
	}
	m.byName[name]++
}

// reset forgets what was counted, the warm-up.
func (m *Meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byName = nil
}

func (m *Meter) commands() Commands {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := Commands{ByName: maps.Clone(m.byName)}
	for _, n := range c.ByName {
		c.Total += n
	}
	return c
}

// Commands are the commands sent in one trial.
type Commands struct {
	Total  int            `json:"total"`
	ByName map[string]int `json:"by_name"`
}

type meteredConn struct {
	net.Conn
	requests requests // go-redis lets one goroutine at a time write to a connection
}

func (c *meteredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.requests.feed(b[:n])
	return n, err
}

// SyscallConn lets go-redis check an idle connection as it would without a meter.
func (c *meteredConn) SyscallConn() (syscall.RawConn, error) {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, syscall.ENOTSUP
	}
	return sc.SyscallConn()
}
