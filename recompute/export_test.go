package recompute

import "time"

// Size returns how many keys Local keeps something of.
func (l *Local) Size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// Left is what is left until then, seen from now by both clocks.
func Left(until, now time.Time) time.Duration { return left(until, now) }
