package redislock

import (
	"context"
	"sync"
	"time"
)

// announcements counts the servers that announce the release of a lease. Until most have, less than most can be free, and who asks is
// refused; once they have, those still to come say nothing new.
type announcements struct {
	mu    sync.Mutex
	heard map[string]announced // of names for which somebody waits
}

type announced struct {
	since   time.Time
	servers map[int]bool
}

// add takes in what a server announced within a time of the first, and says how many have.
func (a *announcements) add(server int, name string, within time.Duration) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, ok := a.heard[name]
	if !ok || last.servers[server] || time.Since(last.since) > within { // another release
		last = announced{time.Now(), make(map[int]bool)}
		if a.heard == nil {
			a.heard = make(map[string]announced)
		}
		a.heard[name] = last
	}
	last.servers[server] = true
	return len(last.servers)
}

func (a *announcements) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.heard, name)
}

// Wake tells when a lease of key is released, as most servers have announced. The first who waits has the quorum subscribe on all
// servers; a minute after the last it unsubscribes.
func (q *Quorum) Wake(_ context.Context, key string) (woken <-chan struct{}, stop func()) {
	woken, leave := q.waiters.Wait(key)
	for _, m := range q.members {
		m.ear.enter()
	}
	return woken, sync.OnceFunc(func() {
		leave()
		if len(q.waiters.Since(key)) == 0 {
			q.announcements.forget(key)
		}
		for _, m := range q.members {
			m.ear.exit()
		}
	})
}

// released is what a server announced. It says whether somebody waits.
func (q *Quorum) released(server int, name string) bool {
	if len(q.waiters.Since(name)) == 0 {
		return false
	}
	if q.announcements.add(server, name, q.budget) == q.need {
		q.waiters.Wake(name)
	}
	if len(q.waiters.Since(name)) == 0 { // the last has just left, and may have had it forgotten before it was added
		q.announcements.forget(name)
		return false
	}
	return true
}
