package main

import (
	"context"
	"sync"
	"time"
)

// Call is one caller's experience.
type Call struct {
	Key        string
	Start, End time.Duration
	Age        time.Duration // of the value served, at the end of the call; 0 with an error
	Err        error
}

// Calls collects what callers met with.
type Calls struct {
	mu  sync.Mutex
	all []Call
}

// make asks a replica for a key and notes what came of it.
func (c *Calls) make(ctx context.Context, r Replica, key string, o *Origin) Call {
	call := Call{Key: key, Start: now()}
	v, err := r.Get(ctx, key, o.compute(key))
	call.End = now()
	if err == nil {
		var at time.Duration
		if at, err = readValue(key, v); err == nil {
			call.Age = max(0, call.End-at)
		}
	}
	call.Err = err

	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, call)
	return call
}

// list returns the calls so far.
func (c *Calls) list() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[:len(c.all):len(c.all)]
}
