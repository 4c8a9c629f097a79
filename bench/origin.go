package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"
)

// epoch is the zero of every time in a report; monotonic, and the same for all replicas, which live in this process.
var epoch = time.Now()

func now() time.Duration { return time.Since(epoch) }

// Origin is what the caches protect. It takes its time, and remembers who made it work.
type Origin struct {
	delay time.Duration
	crowd bool // it takes delay for each computation under way

	mu      sync.Mutex
	fail    error // what every computation ends in; nil: a value
	started int
	running int
	peak    int
	starts  map[string][]time.Duration
	ends    map[string][]time.Duration
}

func newOrigin(delay time.Duration, fail error) *Origin {
	return &Origin{delay: delay, fail: fail, starts: map[string][]time.Duration{}, ends: map[string][]time.Duration{}}
}

// compute is the computation of one key's value.
func (o *Origin) compute(key string) Compute {
	return func(ctx context.Context) ([]byte, error) {
		delay, fail := o.begin(key)
		err := pause(ctx, delay)
		if err == nil {
			err = fail
		}
		end := o.end(key)
		if err != nil {
			return nil, err
		}
		return newValue(key, end), nil
	}
}

// begin counts a computation in, and says how long it will take and what it will end in.
func (o *Origin) begin(key string) (delay time.Duration, fail error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.started++
	o.running++
	o.peak = max(o.peak, o.running)
	o.starts[key] = append(o.starts[key], now())
	if o.crowd {
		return o.delay * time.Duration(o.running), o.fail
	}
	return o.delay, o.fail
}

// set makes all computations that begin from now on end in err.
func (o *Origin) set(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = err
}

// begun counts the computations of a key that began in [from, to).
func (o *Origin) begun(key string, from, to time.Duration) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, _ := slices.BinarySearch(o.starts[key], from)
	last, _ := slices.BinarySearch(o.starts[key], to)
	return last - first
}

func (o *Origin) end(key string) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running--
	t := now()
	o.ends[key] = append(o.ends[key], t)
	return t
}

// firstEnd is the end of the key's first computation that ended in [from, to]: from then on the fleet had an answer.
func (o *Origin) firstEnd(key string, from, to time.Duration) (time.Duration, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ends := o.ends[key] // ascending: appended under the lock in which the time was read
	i, _ := slices.BinarySearch(ends, from)
	if i == len(ends) || ends[i] > to {
		return 0, false
	}
	return ends[i], true
}

func (o *Origin) counts() (computations, peak int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.started, o.peak
}

// pause waits for d or for the end of ctx, whichever comes first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// valueSize is the length of every value.
const valueSize = 512

var errWrongValue = errors.New("bench: the value belongs to another key")

// newValue is a value that tells whose it is and when it was computed.
func newValue(key string, at time.Duration) []byte {
	v := make([]byte, valueSize)
	binary.BigEndian.PutUint64(v, uint64(at))
	copy(v[8:], key)
	return v
}

// readValue tells when a value was computed, or that it is not the key's.
func readValue(key string, v []byte) (at time.Duration, err error) {
	if len(v) != valueSize || !bytes.Equal(bytes.TrimRight(v[8:], "\x00"), []byte(key)) {
		return 0, errWrongValue
	}
	return time.Duration(binary.BigEndian.Uint64(v)), nil
}
