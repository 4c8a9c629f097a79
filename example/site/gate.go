package site

import (
	"context"
	"sync"
)

// Gate holds renderings back, so that something else can happen while they are under way.
type Gate struct {
	entered, open       chan struct{}
	enterOnce, openOnce sync.Once
}

// Hold puts a gate before every rendering of the page at path that begins from now on.
func (o *Origin) Hold(path string) *Gate {
	g := &Gate{entered: make(chan struct{}), open: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gates[path] = g
	return g
}

// Entered is closed once a rendering has begun and stands at the gate.
func (g *Gate) Entered() <-chan struct{} { return g.entered }

// Open lets everyone pass, now and later. It may be called more than once.
func (g *Gate) Open() { g.openOnce.Do(func() { close(g.open) }) }

func (g *Gate) pass(ctx context.Context) error {
	if g == nil {
		return nil
	}
	g.enterOnce.Do(func() { close(g.entered) })
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
