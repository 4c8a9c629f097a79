package pgtest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Gate is a way to a server that can be closed. It forwards the end of a connection even then, as a network would
// that loses only answers.
type Gate struct {
	Addr string

	mute   atomic.Bool // answers wait, and new connections
	pooler atomic.Bool // sessions seem to have other process ids than they have

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// NewGate opens a gate to the server at addr for the time of the test.
func NewGate(t testing.TB, addr string) *Gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &Gate{Addr: l.Addr().String(), conns: make(map[net.Conn]struct{})}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { g.pass(client, addr) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		g.Mute(false)
		g.Cut()
		running.Wait()
	})
	return g
}

// URL is how to connect through the gate.
func (g *Gate) URL() string { return "postgres://postgres@" + g.Addr + "/postgres?sslmode=disable" }

// Mute says whether what the server sends is kept back from now on. What clients send on new connections is kept back too.
func (g *Gate) Mute(on bool) { g.mute.Store(on) }

// Pooler makes new connections look as if they went through a pooler.
func (g *Gate) Pooler() { g.pooler.Store(true) }

// Cut ends all connections.
func (g *Gate) Cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		_ = c.Close()
	}
}

func (g *Gate) pass(client net.Conn, addr string) {
	for g.mute.Load() {
		time.Sleep(time.Millisecond)
	}
	server, err := net.Dial("tcp", addr)
	if err != nil {
		_ = client.Close()
		return
	}
	g.mu.Lock()
	g.conns[client], g.conns[server] = struct{}{}, struct{}{}
	g.mu.Unlock()
	var ways sync.WaitGroup
	var ended atomic.Bool
	way := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // that it ends is all that counts
		ended.Store(true)
		_ = client.Close()
		_ = server.Close()
	}
	ways.Go(func() { way(server, client) })
	ways.Go(func() { way(&muted{g, client, &ended}, server) })
	ways.Wait()
	g.mu.Lock()
	delete(g.conns, client)
	delete(g.conns, server)
	g.mu.Unlock()
}

// muted is the way from the server to a client.
type muted struct {
	*Gate
	client net.Conn
	ended  *atomic.Bool
}

func (m *muted) Write(p []byte) (int, error) {
	for m.mute.Load() && !m.ended.Load() {
		time.Sleep(time.Millisecond)
	}
	// BackendKeyData: its type, its length (12), the process id, a secret.
	if i := bytes.Index(p, []byte("K\x00\x00\x00\x0c")); m.pooler.Load() && i >= 0 && i+9 <= len(p) {
		p = bytes.Clone(p)
		p[i+8] ^= 1
	}
	return m.client.Write(p)
}
