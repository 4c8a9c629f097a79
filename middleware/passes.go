package middleware

import (
	"sync"
	"time"
)

const (
	passFor    = 5 * time.Second // as package cache does, for all processes
	mostPasses = 8192
)

// passes remembers the keys whose answers are for nobody else, so that those who ask for them need not queue to hear
// it again. It forgets the older ones when there are too many: then those queue, once.
type passes struct {
	mu         sync.Mutex
	young, old map[string]time.Time // until when
}

func (p *passes) add(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.young) >= mostPasses/2 {
		p.old, p.young = p.young, nil
	}
	if p.young == nil {
		p.young = make(map[string]time.Time)
	}
	p.young[key] = time.Now().Add(passFor)
}

func (p *passes) has(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.young[key]
	if !ok {
		until, ok = p.old[key]
	}
	return ok && time.Now().Before(until)
}
