package recompute

import (
	"slices"
	"sync"
	"time"
)

// Waiters are those in a process who wait for keys: what a [Waker] is made of. The zero value is ready.
//
// One reason wakes one waiter, the one that has waited longest, since only one can have the lease. Waiters of several processes are
// woken together, one in each: there is no fairness between processes.
type Waiters struct {
	mu     sync.Mutex
	queues map[string][]waiter
}

// waiter is a channel that holds one token, and when it came.
type waiter struct {
	woken chan struct{}
	since time.Time
}

// Wait queues a waiter for key until stop is called. A token that it has not taken by then goes to the next.
func (w *Waiters) Wait(key string) (woken <-chan struct{}, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues == nil {
		w.queues = make(map[string][]waiter)
	}
	c := waiter{make(chan struct{}, 1), time.Now()}
	w.queues[key] = append(w.queues[key], c)
	return c.woken, sync.OnceFunc(func() { w.leave(key, c) })
}

func (w *Waiters) leave(key string, c waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queues[key] = slices.DeleteFunc(w.queues[key], func(other waiter) bool { return other == c })
	select {
	case <-c.woken:
		w.wake(key)
	default:
	}
	if len(w.queues[key]) == 0 {
		delete(w.queues, key)
	}
}

// Since returns when the waiters for key came, the first one first.
func (w *Waiters) Since(key string) (came []time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.queues[key] {
		came = append(came, c.since)
	}
	return came
}

// Wake gives a token to the longest waiter for key that has none, and says whether anybody has one now.
func (w *Waiters) Wake(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wake(key)
}

func (w *Waiters) wake(key string) bool {
	for _, c := range w.queues[key] {
		if c.give() {
			return true
		}
	}
	return len(w.queues[key]) > 0
}

// WakeAll gives a token to every waiter: something may have been missed.
func (w *Waiters) WakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, queue := range w.queues {
		for _, c := range queue {
			c.give()
		}
	}
}

func (c waiter) give() bool {
	select {
	case c.woken <- struct{}{}:
		return true
	default:
		return false
	}
}
