package cachetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

func deletionRemoves(_ *testing.T, s *subject) {
	s.put(s.key(one), "1")
	s.put(s.key(two), "2")
	s.delete(s.name)
	s.absent(s.key(one))
	s.absent(s.key(two))
	s.put(s.key(one), "again")
	s.stands(s.key(one), "again")
}

func deletionRefuses(_ *testing.T, s *subject) {
	s.put(s.key(one), "stands")
	before, beforeToo := s.begin(s.key(one)), s.begin(s.key(two))
	s.delete(s.name)
	s.refused(s.key(one), write("late", before))
	s.refused(s.key(two), write("late", beforeToo))
	after := s.begin(s.key(one))
	s.refused(s.key(one), write("late", before))
	s.set(s.key(one), write("after", after))
	s.refused(s.key(one), write("late", before))
	s.stands(s.key(one), "after")
}

func deletionTakesNumber(t *testing.T, s *subject) {
	before := s.begin(s.key(one))
	for range 5 {
		s.delete(s.name)
	}
	after := s.begin(s.key(one))
	require.Greater(t, after, before)
	s.set(s.key(one), write("after", after))
}

func deletionLeavesOthers(_ *testing.T, s *subject) {
	other := cache.Key{Name: s.name + "'s neighbour", Schema: one}
	s.put(s.key(one), "deleted")
	s.put(other, "stays")
	under := s.begin(other)
	s.delete(s.name)
	s.stands(other, "stays")
	s.set(other, write("goes on", under))
	s.put(s.key(one), "deleted too")
	s.delete(s.name, other.Name, s.name)
	s.absent(s.key(one))
	s.absent(other)
}

func deletionOfNothing(_ *testing.T, s *subject) {
	s.delete()
	s.delete(s.name)
	s.delete(s.name, s.name+"'s neighbour")
	begun := s.begin(s.key(one))
	s.delete(s.name)
	s.refused(s.key(one), write("late", begun))
}

func deletionAsOfEarlier(t *testing.T, s *subject) {
	s.put(s.key(one), "old")
	begun := s.begin(s.key(one))
	time.Sleep(brief)
	ago := time.Now()
	time.Sleep(brief)
	since := s.put(s.key(two), "new")
	require.NoError(t, s.Delete(t.Context(), time.Since(ago), s.name))
	s.absent(s.key(one))
	s.refused(s.key(one), write("late", begun))
	s.stands(s.key(two), "new")
	s.set(s.key(two), write("again", since))
	s.put(s.key(one), "after")
	s.stands(s.key(one), "after")
}

func deletionLongAgo(t *testing.T, s *subject) {
	fence := s.put(s.key(one), "v")
	require.NoError(t, s.Delete(t.Context(), 10*long, s.name, s.name+"'s neighbour"))
	s.stands(s.key(one), "v")
	s.set(s.key(one), write("again", fence))
}

func passStops(t *testing.T, s *subject) {
	pass := func(fence cache.Fence, pause time.Duration) {
		require.NoError(t, s.Fail(t.Context(), s.key(one), cache.Failure{Fence: fence, Pause: pause, Pass: true}))
	}
	passed := func() {
		fence, e, err := s.Begin(t.Context(), s.key(one), 0, long)
		require.ErrorIs(t, err, cache.ErrPass)
		require.Zero(t, fence)
		require.Zero(t, e)
	}
	pass(s.begin(s.key(one)), brief)
	passed()
	s.begin(s.key(two))
	time.Sleep(brief + slack)
	first, second := s.begin(s.key(one)), s.begin(s.key(one))
	pass(first, long)
	passed()
	s.set(s.key(one), write("v", second))
	s.begin(s.key(one))
	pass(s.begin(s.key(one)), long)
	s.delete(s.name)
	s.begin(s.key(one))
}

// fail notes a failure.
func (s *subject) fail(key cache.Key, fence cache.Fence, pause time.Duration) {
	s.t.Helper()
	require.NoError(s.t, s.Fail(s.t.Context(), key, cache.Failure{Fence: fence, Text: "no such table", Pause: pause}))
}

// failsLate asserts that a failure is refused.
func (s *subject) failsLate(fence cache.Fence, pause time.Duration) {
	s.t.Helper()
	f := cache.Failure{Fence: fence, Text: "too late", Pause: pause}
	require.ErrorIs(s.t, s.Fail(s.t.Context(), s.key(one), f), cache.ErrFenced)
}

// stopped asserts that Begin says that a computation failed.
func (s *subject) stopped(key cache.Key) {
	s.t.Helper()
	fence, e, err := s.Begin(s.t.Context(), key, 0, long)
	var failed *cache.FailedError
	require.ErrorAs(s.t, err, &failed)
	require.Equal(s.t, "no such table", failed.Text)
	require.Zero(s.t, fence)
	require.Zero(s.t, e)
}

func failureStops(t *testing.T, s *subject) {
	fence := s.begin(s.key(one))
	began := time.Now()
	s.fail(s.key(one), fence, brief)
	s.stopped(s.key(one))
	var failed *cache.FailedError
	for ended := false; !ended; time.Sleep(5 * time.Millisecond) {
		_, _, err := s.Begin(t.Context(), s.key(one), 0, long)
		ended = !errors.As(err, &failed)
		require.Less(t, time.Since(began), brief+slack)
	}
	require.GreaterOrEqual(t, time.Since(began), brief)

	long := cache.Failure{Fence: s.begin(s.key(one)), Text: strings.Repeat("é", 10_000), Pause: long}
	require.NoError(t, s.Fail(t.Context(), s.key(one), long))
	_, _, err := s.Begin(t.Context(), s.key(one), 0, brief)
	require.ErrorAs(t, err, &failed)
	require.True(t, strings.HasPrefix(long.Text, failed.Text), "a text may be cut short")
}

func failureWithoutPause(_ *testing.T, s *subject) {
	s.fail(s.key(one), s.begin(s.key(one)), 0)
	s.begin(s.key(one))
}

func failureOfSchema(_ *testing.T, s *subject) {
	s.fail(s.key(one), s.begin(s.key(one)), long)
	s.begin(s.key(two))
	s.put(s.key(two), "v")
	s.stopped(s.key(one))
}

func writeEndsFailure(_ *testing.T, s *subject) {
	first, second := s.begin(s.key(one)), s.begin(s.key(one))
	s.fail(s.key(one), first, long)
	s.set(s.key(one), write("v", second))
	s.begin(s.key(one))
}

func deletionEndsFailure(_ *testing.T, s *subject) {
	s.fail(s.key(one), s.begin(s.key(one)), long)
	s.fail(s.key(two), s.begin(s.key(two)), long)
	s.delete(s.name)
	s.begin(s.key(one))
	s.begin(s.key(two))
}

func lateFailure(_ *testing.T, s *subject) {
	s.failsLate(1, long) // nothing is known of the name
	first, second := s.begin(s.key(one)), s.begin(s.key(one))
	s.set(s.key(one), write("v", second))
	s.failsLate(first, long)
	s.begin(s.key(one))

	first, second = s.begin(s.key(one)), s.begin(s.key(one))
	s.set(s.key(one), cache.Write{Fence: second})
	s.failsLate(first, long)
	s.begin(s.key(one))

	first = s.begin(s.key(one))
	s.delete(s.name)
	s.failsLate(first, long)
	s.begin(s.key(one))
}

func failureLeavesEntry(_ *testing.T, s *subject) {
	s.put(s.key(one), "v")
	s.fail(s.key(one), s.begin(s.key(one)), long)
	s.stands(s.key(one), "v")
	s.stopped(s.key(one))
}
