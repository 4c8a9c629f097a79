package cache

import (
	"context"
	"sync"
)

// absence is whether the store was found to be unreachable when it was asked last. Nobody who has a last known value
// waits for it then.
type absence struct {
	mu      sync.Mutex
	away    bool
	present context.Context // ends when the store is found to be away
	cancel  context.CancelFunc
}

// found takes in how the store answered.
func (a *absence) found(away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away == away {
		return
	}
	a.away = away
	if away && a.cancel != nil {
		a.cancel()
		a.present = nil
	}
}

// now says whether the store is away.
func (a *absence) now() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.away
}

// until calls f once the store is found to be away, unless stop is called before.
func (a *absence) until(f func()) (stop func() bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.present == nil {
		a.present, a.cancel = context.WithCancel(context.Background())
	}
	return context.AfterFunc(a.present, f)
}
