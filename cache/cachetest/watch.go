package cachetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// watch starts to watch and returns what is told after Connected. It skips the test if the store is no Watcher.
func (s *subject) watch() <-chan cache.Event {
	s.t.Helper()
	w, ok := s.Store.(cache.Watcher)
	if !ok {
		s.t.Skip("the store is no cache.Watcher")
	}
	events := make(chan cache.Event, 1<<12)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Watch(ctx, func(e cache.Event) { events <- e })
	}()
	s.t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case e := <-events:
		require.Equal(s.t, cache.Connected, e.Kind)
	case <-time.After(soon):
		require.FailNow(s.t, "not connected")
	}
	return events
}

// hear returns the next event of the name.
func (s *subject) hear(events <-chan cache.Event) cache.Event {
	s.t.Helper()
	for late := time.After(soon); ; {
		select {
		case e := <-events:
			if e.Key.Name == s.name {
				return e
			}
		case <-late:
			require.FailNow(s.t, "no event")
		}
	}
}

func connectedFirst(_ *testing.T, s *subject) { s.watch() }

func hearsPublished(t *testing.T, s *subject) {
	events := s.watch()
	for _, schema := range []string{one, two} {
		fence := s.begin(s.key(schema))
		before := time.Now()
		s.set(s.key(schema), write("v", fence))
		e := s.hear(events)
		require.Equal(t, cache.Published, e.Kind)
		require.Equal(t, s.key(schema), e.Key)
		if e.Entry.Data != nil { // it need not come along
			require.Equal(t, "v", string(e.Entry.Data))
			require.Equal(t, fence, e.Entry.Fence)
			require.LessOrEqual(t, e.Entry.Age, time.Since(before)+slack)
			require.GreaterOrEqual(t, e.Entry.Age, time.Duration(0))
		}
	}
	s.set(s.key(one), cache.Write{Data: []byte("sole"), Fence: s.begin(s.key(one)), TTL: long, Sole: true})
	require.Equal(t, cache.Published, s.hear(events).Kind)
}

func hearsNoRefused(t *testing.T, s *subject) {
	events := s.watch()
	lower := s.begin(s.key(one))
	s.put(s.key(one), "v")
	s.refused(s.key(one), write("lower", lower))
	s.failsLate(lower, 0)
	s.delete(s.name)
	require.Equal(t, cache.Published, s.hear(events).Kind)
	require.Equal(t, cache.Deleted, s.hear(events).Kind)
}

func hearsDeleted(t *testing.T, s *subject) {
	events := s.watch()
	s.delete(s.name) // absent: still, a computation may be under way
	require.Equal(t, cache.Event{Kind: cache.Deleted, Key: cache.Key{Name: s.name}}, s.hear(events))
	s.put(s.key(one), "v")
	s.put(s.key(two), "v")
	s.delete(s.name+"'s neighbour", s.name)
	require.Equal(t, cache.Published, s.hear(events).Kind)
	require.Equal(t, cache.Published, s.hear(events).Kind)
	require.Equal(t, cache.Deleted, s.hear(events).Kind)
}

func hearsFailed(t *testing.T, s *subject) {
	events := s.watch()
	for _, pause := range []time.Duration{0, long} {
		s.fail(s.key(one), s.begin(s.key(one)), pause)
		e := s.hear(events)
		require.Equal(t, cache.Failed, e.Kind)
		require.Equal(t, s.key(one), e.Key)
		var failed *cache.FailedError
		require.ErrorAs(t, e.Err, &failed)
		require.Equal(t, "no such table", failed.Text)
	}
}

func hearsPass(t *testing.T, s *subject) {
	events := s.watch()
	fence := s.begin(s.key(one))
	require.NoError(t, s.Fail(t.Context(), s.key(one), cache.Failure{Fence: fence, Pause: long, Pass: true}))
	e := s.hear(events)
	require.Equal(t, cache.Failed, e.Kind)
	require.Equal(t, s.key(one), e.Key)
	require.ErrorIs(t, e.Err, cache.ErrPass)
}

// locker returns the store's locker. It skips the test if the store is no Elector.
func (s *subject) locker() recompute.Locker {
	s.t.Helper()
	e, ok := s.Store.(cache.Elector)
	if !ok {
		s.t.Skip("the store is no cache.Elector")
	}
	return e.Locker()
}

func hearsLeases(t *testing.T, s *subject) {
	locker := s.locker()
	events := s.watch()
	lease, err := locker.Acquire(t.Context(), s.name, long)
	require.NoError(t, err)
	require.NoError(t, lease.Extend(t.Context(), long))
	require.Equal(t, cache.Event{Kind: cache.Renewed, Key: cache.Key{Name: s.name}}, s.hear(events))
	require.NoError(t, lease.Release(t.Context()))
	require.Equal(t, cache.Event{Kind: cache.Released, Key: cache.Key{Name: s.name}}, s.hear(events))
}

func everyWatcherHears(t *testing.T, s *subject) {
	watchers := []<-chan cache.Event{s.watch(), s.watch(), s.watch()}
	s.delete(s.name)
	for _, events := range watchers {
		require.Equal(t, cache.Deleted, s.hear(events).Kind)
	}
}

func watchingEnds(t *testing.T, s *subject) {
	w, ok := s.Store.(cache.Watcher)
	if !ok {
		t.Skip("the store is no cache.Watcher")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Watch(ctx, func(cache.Event) {})
	}()
	time.Sleep(slack)
	cancel()
	select {
	case <-ended:
	case <-time.After(soon):
		require.FailNow(t, "watching goes on")
	}
	s.delete(s.name) // and telling nobody is no trouble
}

func leasesAndEntries(t *testing.T, s *subject) {
	locker := s.locker()
	lease, err := locker.Acquire(t.Context(), s.name, long)
	require.NoError(t, err)
	s.absent(s.key(one))
	s.put(s.key(one), "v") // the lock elects, the fence protects
	s.stands(s.key(one), "v")
	s.delete(s.name)
	_, err = locker.Acquire(t.Context(), s.name, long)
	require.ErrorIs(t, err, recompute.ErrHeld, "neither ends the lease")
	require.NoError(t, lease.Release(t.Context()))
	lease, err = locker.Acquire(t.Context(), s.name, long)
	if assert.NoError(t, err) {
		require.NoError(t, lease.Release(t.Context()))
	}
}
