package faultproxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// The outages. One at a time: each lasts until Restore.

// Refuse closes all connections and refuses new ones, as a host does whose server has ended.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	p.shut()
	p.mu.Unlock()
	p.KillAll()
}

// Silence lets nothing pass on present connections and accepts new ones to say nothing on them either, as a server does that
// hangs. Restore closes them all, as its end does.
func (p *Proxy) Silence() {
	p.mu.Lock()
	p.hush = true
	p.mu.Unlock()
	p.HalfOpen()
}

// BlackHole makes packets vanish: nothing passes on present connections and no new one comes about. With Restore they flow again, and
// what was sent meanwhile arrives. (It needs Linux, where a listener that takes no more connections does not answer at all.)
func (p *Proxy) BlackHole() error {
	p.mu.Lock()
	d := p.door
	p.hole = true
	p.mu.Unlock()
	for _, l := range p.present() {
		l.hold()
	}
	return d.block(p.Addr)
}

// Restore ends an outage.
func (p *Proxy) Restore() error {
	p.mu.Lock()
	d, hushed := p.door, p.hush
	p.hush, p.hole = false, false
	p.mu.Unlock()
	for _, l := range p.present() {
		if hushed && l.frozen.Load() {
			l.close()
		}
		l.release()
	}
	if d == nil {
		return p.open()
	}
	return d.unblock()
}

// door is where connections come in.
type door struct {
	listener *net.TCPListener

	mu      sync.Mutex
	blocked chan struct{}       // closed when accepting may go on; nil while it does
	fill    []net.Conn          // they keep the blocked door's queue full
	ours    map[string]struct{} // addresses of all that ever did: they are no clients
}

// open begins to accept connections at p.Addr.
func (p *Proxy) open() error {
	l, err := net.Listen("tcp", p.Addr)
	if err != nil {
		return err
	}
	d := &door{listener: l.(*net.TCPListener), ours: make(map[string]struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.door = d
	p.running.Go(func() { d.accept(p.enter) })
	return nil
}

// shut ends accepting; p is locked.
func (p *Proxy) shut() {
	if d := p.door; d != nil {
		p.door = nil
		_ = d.unblock() // it closes all the same
		_ = d.listener.Close()
	}
}

func (d *door) accept(enter func(net.Conn)) {
	for {
		client, err := d.listener.Accept()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			d.mu.Lock()
			blocked := d.blocked
			d.mu.Unlock()
			if blocked != nil {
				<-blocked
			}
		case err != nil:
			return
		case d.own(client):
			_ = client.Close()
		default:
			enter(client)
		}
	}
}

func (d *door) own(client net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ours := d.ours[client.RemoteAddr().String()]
	return ours
}

// block stops accepting, shortens the queue of connections that nobody has accepted yet to the least there is, and fills it:
// then the kernel drops whatever asks for another.
func (d *door) block(addr string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blocked = make(chan struct{})
	if err := d.listener.SetDeadline(time.Now()); err != nil {
		return err
	}
	if err := d.backlog(0); err != nil {
		return err
	}
	for {
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			return nil
		}
		d.fill = append(d.fill, c)
		d.ours[c.LocalAddr().String()] = struct{}{}
	}
}

// unblock accepts again. It does nothing to a door that is not blocked.
func (d *door) unblock() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.blocked == nil {
		return nil
	}
	for _, c := range d.fill {
		_ = c.Close()
	}
	err := errors.Join(d.backlog(longQueue), d.listener.SetDeadline(time.Time{}))
	close(d.blocked)
	d.blocked, d.fill = nil, nil
	return err
}

const longQueue = 512

// backlog sets how many connections may wait to be accepted.
func (d *door) backlog(n int) error {
	raw, err := d.listener.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = relisten(fd, n) })
	return errors.Join(err, failed)
}
