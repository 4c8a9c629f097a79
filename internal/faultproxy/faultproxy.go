// Package faultproxy stands between clients and a Redis server and loses what a test tells it to lose.
//
// It reads requests one command at a time, so that "the second EVALSHA loses its reply after it was applied" is exactly that,
// in each run.
package faultproxy

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
)

// Fault is what happens to a command.
type Fault uint8

// The faults.
const (
	DropReply   Fault = iota + 1 // it is applied; instead of its reply the connection is closed
	StallReply                   // it is applied; on its connection nothing is answered ever again
	DropRequest                  // it is not applied; the connection is closed
	Delay                        // it is applied after Rule.For, even if the client has gone by then
	Answer                       // it is not applied; Rule.Say is the reply
)

// Rule says which commands meet a fault. The first rule that matches a command has it.
type Rule struct {
	Marker string        // bytes that the command holds, a name in lower case as clients send it; "" is in every command
	Nth    int           // which of those that hold the marker, the first is 1; 0: all
	Do     Fault         // what happens to them
	For    time.Duration // how long Delay lasts
	Say    string        // what Answer replies, "-LOADING Redis is loading the dataset in memory"; its line end is added

	// Ask, if set, says what Answer replies to a command of these words; "" lets it pass. Many connections call it at once.
	Ask func(words []string) string
}

// Hits counts for one rule.
type Hits struct {
	proxy *Proxy
	rule  Rule
	seen  int // guarded by proxy.mu: commands that hold the marker
	hit   int // guarded by proxy.mu: those of them that met the fault
}

// Count returns how many commands have met the fault of the rule.
func (h *Hits) Count() int {
	h.proxy.mu.Lock()
	defer h.proxy.mu.Unlock()
	return h.hit
}

// Proxy forwards connections to a server. Its methods may be called from several goroutines.
type Proxy struct {
	Addr string // where clients connect to

	server  string
	running sync.WaitGroup

	mu       sync.Mutex
	door     *door // where connections come in; nil while they are refused
	hush     bool  // new connections are frozen
	hole     bool  // new connections are held
	closed   bool
	accepted int
	rules    []*Hits
	links    map[*link]struct{}
}

// Start runs a proxy in front of the server at addr for the time of the test.
func Start(t testing.TB, addr string) *Proxy {
	t.Helper()
	p, err := Open(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Open runs a proxy in front of the server at addr, until Close.
func Open(addr string) (*Proxy, error) {
	const tries = 5 // another process may take the port between our look and our bind
	p := &Proxy{server: addr, links: make(map[*link]struct{})}
	var err error
	for range tries {
		p.Addr = redisserver.FreeAddr()
		if err = p.open(); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("faultproxy: %w", err)
}

// Close ends the proxy and all its connections. Closing again is harmless.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.shut()
	p.mu.Unlock()
	p.KillAll()
	p.running.Wait()
}

// On adds a rule, whose counting begins now.
func (p *Proxy) On(r Rule) *Hits {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := &Hits{proxy: p, rule: r}
	p.rules = append(p.rules, h)
	return h
}

// Heal takes all rules away. Connections that are stalled or half-open stay so.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// HalfOpen makes all present connections pass nothing any more in either direction, without closing them: what is left when a
// host or a firewall between forgets them. New connections work.
func (p *Proxy) HalfOpen() {
	for _, l := range p.present() {
		l.frozen.Store(true)
	}
}

// KillAll closes all present connections.
func (p *Proxy) KillAll() {
	for _, l := range p.present() {
		l.close()
	}
}

// Accepted returns how many connections clients have opened.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

func (p *Proxy) present() (links []*link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		links = append(links, l)
	}
	return links
}

// enter makes a link of a connection and counts it in. Once the proxy is closed the count only falls.
func (p *Proxy) enter(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	l := &link{proxy: p, client: client, server: server, gone: make(chan struct{})}
	if p.closed {
		l.close()
		return
	}
	l.frozen.Store(p.hush)
	if p.hole {
		l.hold()
	}
	p.links[l] = struct{}{}
	p.running.Add(2)
	go l.requests()
	go l.replies()
}

func (p *Proxy) exit(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// fate returns the rule that a command meets, the zero Rule if none.
func (p *Proxy) fate(command []byte) (fate Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.rules {
		if !bytes.Contains(command, []byte(h.rule.Marker)) {
			continue
		}
		h.seen++
		if fate.Do == 0 && (h.rule.Nth == 0 || h.rule.Nth == h.seen) {
			h.hit++
			fate = h.rule
		}
	}
	return fate
}
