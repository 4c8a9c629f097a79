package cachetest

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

// crowd is how many do something together.
const crowd = 50

func numbersGrow(t *testing.T, s *subject) {
	var last cache.Fence
	for i := range 20 {
		next := s.begin(s.key([]string{one, two}[i%2]))
		require.Greater(t, next, last)
		last = next
	}
}

func numbersAreUnique(t *testing.T, s *subject) {
	var all sync.WaitGroup
	fences := make([]cache.Fence, crowd)
	for i := range fences {
		all.Go(func() {
			fence, _, err := s.Begin(t.Context(), s.key([]string{one, two}[i%2]), 0, long)
			assert.NoError(t, err)
			fences[i] = fence
		})
	}
	all.Wait()
	slices.Sort(fences)
	require.Positive(t, fences[0])
	require.Len(t, slices.Compact(fences), crowd)
}

func beginReturnsNewer(t *testing.T, s *subject) {
	begin := func(seen cache.Fence) (cache.Fence, cache.Entry) {
		fence, e, err := s.Begin(t.Context(), s.key(one), seen, long)
		require.NoError(t, err)
		return fence, e
	}
	_, e := begin(0)
	require.Zero(t, e, "nothing stands")
	stands := s.put(s.key(one), "v")
	for _, seen := range []cache.Fence{0, 1, stands - 1} {
		fence, e := begin(seen)
		require.Equal(t, "v", string(e.Data), "seen %d", seen)
		require.Equal(t, stands, e.Fence)
		require.Greater(t, fence, stands)
	}
	for _, seen := range []cache.Fence{stands, stands + 1, math.MaxInt64} {
		_, e = begin(seen)
		require.Zero(t, e, "seen %d of %d", seen, stands)
	}
}

func beginReturnsOwnSchema(t *testing.T, s *subject) {
	s.put(s.key(one), "v")
	_, e, err := s.Begin(t.Context(), s.key(two), 0, long)
	require.NoError(t, err)
	require.Zero(t, e)
}

func unknownNumber(_ *testing.T, s *subject) {
	s.refused(s.key(one), write("v", 1)) // nothing is known of the name
	s.refused(s.key(one), write("v", math.MaxInt64))
	fence := s.begin(s.key(one))
	s.refused(s.key(one), write("v", fence-1000)) // older than what is known
	s.refused(s.key(one), write("v", fence+1_000_000_000))
	s.set(s.key(one), write("v", fence))
}

func refusedAfterHigher(_ *testing.T, s *subject) {
	lower, higher := s.begin(s.key(one)), s.begin(s.key(one))
	s.set(s.key(one), write("higher", higher))
	s.refused(s.key(one), write("lower", lower))
	s.refused(s.key(one), cache.Write{Fence: lower})
	s.stands(s.key(one), "higher")

	lower, higher = s.begin(s.key(one)), s.begin(s.key(one))
	s.set(s.key(one), write("lower", lower))
	s.set(s.key(one), write("higher", higher))
	s.stands(s.key(one), "higher")
}

func refusedAfterRemoval(_ *testing.T, s *subject) {
	lower, higher := s.begin(s.key(one)), s.begin(s.key(one))
	s.set(s.key(one), cache.Write{Fence: higher})
	s.refused(s.key(one), write("lower", lower))
	s.absent(s.key(one))
}

func refusedAfterExpired(_ *testing.T, s *subject) {
	lower, higher := s.begin(s.key(one)), s.begin(s.key(one))
	s.set(s.key(one), cache.Write{Data: []byte("higher"), Fence: higher, TTL: brief})
	time.Sleep(brief + slack)
	s.refused(s.key(one), write("lower", lower))
	s.absent(s.key(one))
}

func notRefusedAcrossSchemas(_ *testing.T, s *subject) {
	lower, higher := s.begin(s.key(one)), s.begin(s.key(two))
	s.set(s.key(two), write("2", higher))
	s.set(s.key(one), write("1", lower))
	s.stands(s.key(one), "1")
	s.stands(s.key(two), "2")
}

func notRefusedByBegin(_ *testing.T, s *subject) {
	fence := s.begin(s.key(one))
	s.begin(s.key(one))
	s.begin(s.key(two))
	s.set(s.key(one), write("v", fence))
	s.stands(s.key(one), "v")
}

func repeated(_ *testing.T, s *subject) {
	fence := s.begin(s.key(one))
	for range 3 { // the reply may have been lost
		s.set(s.key(one), write("v", fence))
		s.stands(s.key(one), "v")
	}
	fence = s.begin(s.key(one))
	for range 3 {
		s.set(s.key(one), cache.Write{Data: []byte("sole"), Fence: fence, TTL: long, Sole: true})
		s.stands(s.key(one), "sole")
	}
	fence = s.begin(s.key(one))
	for range 3 {
		s.set(s.key(one), cache.Write{Fence: fence})
		s.absent(s.key(one))
	}
}

func numberHolds(t *testing.T, s *subject) {
	fence, _, err := s.Begin(t.Context(), s.key(one), 0, 2*brief)
	require.NoError(t, err)
	_, _, err = s.Begin(t.Context(), s.key(one), 0, time.Millisecond) // a shorter one takes nothing from it
	require.NoError(t, err)
	s.set(s.key(two), cache.Write{Data: []byte("brief"), Fence: fence, TTL: time.Millisecond})
	time.Sleep(brief)
	s.set(s.key(one), write("v", fence))
	s.stands(s.key(one), "v")
}

func soleRemoves(_ *testing.T, s *subject) {
	s.put(s.key(one), "1")
	s.put(s.key(two), "2")
	s.set(s.key(one), cache.Write{Data: []byte("sole"), Fence: s.begin(s.key(one)), TTL: long, Sole: true})
	s.stands(s.key(one), "sole")
	s.absent(s.key(two))
	s.put(s.key(two), "3")
	s.stands(s.key(one), "sole")
	s.stands(s.key(two), "3")
}

func soleRefuses(_ *testing.T, s *subject) {
	before, beforeToo := s.begin(s.key(one)), s.begin(s.key(two))
	sole := s.begin(s.key(one))
	after := s.begin(s.key(two))
	s.set(s.key(one), cache.Write{Data: []byte("sole"), Fence: sole, TTL: long, Sole: true})
	s.refused(s.key(one), write("late", before))
	s.refused(s.key(two), write("late", beforeToo))
	s.set(s.key(two), write("after", after))
	s.stands(s.key(one), "sole")
}

func soleRefused(_ *testing.T, s *subject) {
	sole, higher := s.begin(s.key(one)), s.begin(s.key(one))
	s.set(s.key(one), write("higher", higher))
	s.refused(s.key(one), cache.Write{Data: []byte("sole"), Fence: sole, TTL: long, Sole: true})

	sole = s.begin(s.key(one))
	s.delete(s.name)
	s.refused(s.key(one), cache.Write{Data: []byte("sole"), Fence: sole, TTL: long, Sole: true})
	s.absent(s.key(one))
}

func highestStands(t *testing.T, s *subject) {
	fences := make([]cache.Fence, crowd)
	for i := range fences {
		fences[i] = s.begin(s.key(one))
	}
	var all sync.WaitGroup
	for _, fence := range fences {
		all.Go(func() {
			err := s.Set(t.Context(), s.key(one), write(strconv.FormatInt(int64(fence), 10), fence))
			if err != nil {
				assert.ErrorIs(t, err, cache.ErrFenced)
			}
		})
	}
	all.Wait()
	highest := slices.Max(fences)
	s.stands(s.key(one), strconv.FormatInt(int64(highest), 10))
	require.Equal(t, highest, s.look(s.key(one)).Fence)
}
