package recompute

import (
	"slices"
	"sync"
	"time"
)

const (
	remembered = 256 // runs, of which the 99th percentile is the third longest
	margin     = 1.5 // a TTL is that much longer
	unmeasured = 10 * time.Second
)

// durations remembers how long the last runs took, exactly: over so few that is simpler than a histogram, and forgets by itself how
// things were long ago.
type durations struct {
	mu     sync.Mutex
	last   []time.Duration // a ring, once it is full
	next   int             // the oldest of a full one
	sorted []time.Duration // the same ones
	p99    time.Duration
}

// add counts a run. A failed one counts only if it was long: it may have failed at once, but it was not slow by failing.
func (d *durations) add(took time.Duration, failed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if failed && took <= d.p99 {
		return
	}
	if len(d.last) < remembered {
		d.last = append(d.last, took)
	} else {
		i, _ := slices.BinarySearch(d.sorted, d.last[d.next])
		d.sorted = slices.Delete(d.sorted, i, i+1)
		d.last[d.next] = took
		d.next = (d.next + 1) % remembered
	}
	i, _ := slices.BinarySearch(d.sorted, took)
	d.sorted = slices.Insert(d.sorted, i, took)
	d.p99 = d.sorted[(99*len(d.sorted)-1)/100]
}

// percentile returns the 99th percentile of the runs that are remembered, and how many those are.
func (d *durations) percentile() (p99 time.Duration, runs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.p99, len(d.last)
}

// ttl is the time that suits the runs measured so far.
func (d *durations) ttl() time.Duration {
	p99, runs := d.percentile()
	if runs == 0 {
		return unmeasured
	}
	return time.Duration(margin * float64(p99))
}
