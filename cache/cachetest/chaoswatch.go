package cachetest

import (
	"context"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
)

// watch is one watcher's way to the store.
type watch struct {
	chaos *Chaos
	tell  func(cache.Event)

	mu   sync.Mutex  // also orders what is told
	up   bool        // the store tells of events
	mend *time.Timer // not nil while cut off: ends that
	over bool
}

// Watch tells of the other store's events, of those that get through.
func (c *Chaos) Watch(ctx context.Context, tell func(cache.Event)) {
	source, ok := c.store.(cache.Watcher)
	if !ok {
		<-ctx.Done()
		return
	}
	w := &watch{chaos: c, tell: tell}
	c.mu.Lock()
	c.watches[w] = struct{}{}
	c.mu.Unlock()
	defer w.end()
	source.Watch(ctx, w.hear)
}

// hear hands on an event, or not.
func (w *watch) hear(e cache.Event) {
	link := e.Kind == cache.Connected || e.Kind == cache.Disconnected
	f := fate{}
	if !link {
		f = w.chaos.fate(OnEvent)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if link {
		w.up = e.Kind == cache.Connected
	}
	switch {
	case w.mend != nil || w.over:
	case f.cut:
		w.tell(cache.Event{Kind: cache.Disconnected, Err: w.chaos.note(WatchCut, OnEvent)})
		w.mend = time.AfterFunc(f.outage, w.reconnect)
	case f.muted:
		_ = w.chaos.note(Muted, OnEvent)
	default:
		w.tell(e)
	}
}

// reconnect ends an outage of ours; the store may have one of its own.
func (w *watch) reconnect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mend == nil || w.over {
		return
	}
	w.mend.Stop()
	w.mend = nil
	if w.up {
		w.tell(cache.Event{Kind: cache.Connected})
	}
}

func (w *watch) end() {
	w.chaos.mu.Lock()
	delete(w.chaos.watches, w)
	w.chaos.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.mend != nil {
		w.mend.Stop()
	}
}
