package cache

import (
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// failures remembers which computations have failed: for Policy.Cooldown nobody tries again, and the next attempt
// behind an answer comes after a pause that grows with each failure, counted from its end.
type failures struct {
	mu    sync.Mutex
	names map[string]failure
	sweep int // number of names at which those whose pause is over are forgotten
}

type failure struct {
	err   error
	count int
	cool  time.Time // until then callers get err
	until time.Time // until then nothing is recomputed behind an answer
	ends  time.Time // of the pause after the last failure
	heard bool      // it was announced, by this process or another
}

const (
	shortestPause = time.Second
	longestPause  = time.Minute
	leastSweep    = 1024
)

// note takes in how a computation ended.
func (f *failures) note(name string, err error, cooldown time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil || notFound(err) || errors.Is(err, recompute.ErrAbandoned) {
		delete(f.names, name)
		return
	}
	if f.names == nil {
		f.names = make(map[string]failure)
	}
	last := f.names[name]
	if last.heard && time.Now().Before(last.ends) {
		last.count-- // it is the one that was announced
	}
	next := failure{count: last.count + 1, until: time.Now().Add(max(last.pause(), cooldown))}
	next.ends = next.until
	if failed := (*FailedError)(nil); cooldown > 0 && shareable(err) && !errors.As(err, &failed) { // else the cooldown began elsewhere
		next.err, next.cool = err, time.Now().Add(cooldown) // an error that nobody gets any more may be large
	}
	f.names[name] = next
	f.forget()
}

// hear takes in that a computation has failed somewhere in the fleet: all processes make their pauses together, or
// the source would be asked the more for failing. One that is heard of in a pause is the one that began it, or came
// of a call that could not wait.
func (f *failures) hear(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.names[name]
	if time.Now().Before(last.ends) {
		return
	}
	if f.names == nil {
		f.names = make(map[string]failure)
	}
	last.ends = time.Now().Add(last.pause())
	last.until = later(last.until, last.ends)
	last.count, last.heard = last.count+1, true
	f.names[name] = last
	f.forget()
}

// pause is how long nothing is recomputed behind an answer after one more failure.
func (f failure) pause() time.Duration {
	return min(shortestPause<<min(max(f.count, 0), 10), longestPause)
}

// forget drops what no longer matters, each time that the number of names has doubled.
func (f *failures) forget() {
	if len(f.names) < max(f.sweep, leastSweep) {
		return
	}
	maps.DeleteFunc(f.names, func(_ string, last failure) bool { return time.Since(last.until) > 0 })
	f.sweep = 2 * len(f.names)
}

// rest puts off the next attempt behind an answer: another process is at it.
func (f *failures) rest(name string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names == nil {
		f.names = make(map[string]failure)
	}
	last := f.names[name]
	last.until = later(last.until, time.Now().Add(d))
	f.names[name] = last
	f.forget()
}

// pausing says whether it is too early for another attempt.
func (f *failures) pausing(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Before(f.names[name].until)
}

// cooling returns the error for which it is too early to compute, or nil.
func (f *failures) cooling(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.names[name]; time.Now().Before(last.cool) {
		return last.err
	}
	return nil
}

// drop forgets a name, since it was written or deleted.
func (f *failures) drop(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.names, name)
}
