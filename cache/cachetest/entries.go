package cachetest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

func neverWritten(_ *testing.T, s *subject) {
	s.absent(s.key(one))
	s.begin(s.key(one))
	s.absent(s.key(one))
}

func comesBack(t *testing.T, s *subject) {
	for _, data := range []string{"v", "\x00", "\r\n", "\xff\xfe", strings.Repeat("\x00\xff", 50_000)} {
		fence := s.put(s.key(one), data)
		e, err := s.Get(t.Context(), s.key(one))
		require.NoError(t, err)
		require.Equal(t, data, string(e.Data))
		require.Equal(t, fence, e.Fence, "the number of the write")
	}
}

func foundPromptly(t *testing.T, s *subject) {
	p, ok := s.Store.(cache.Prompter)
	if !ok {
		t.Skip("the store is no cache.Prompter")
	}
	began := time.Now()
	_, err := p.GetPromptly(t.Context(), s.key(one))
	require.Error(t, err)
	require.Less(t, time.Since(began), soon)
	s.put(s.key(one), "v")
	var e cache.Entry
	s.eventually("it is found", func() bool { // it may give up now and then
		e, err = p.GetPromptly(t.Context(), s.key(one))
		return err == nil
	})
	require.Equal(t, "v", string(e.Data))
	require.Equal(t, s.look(s.key(one)).Fence, e.Fence)
	s.eventually("another is not", func() bool {
		_, err = p.GetPromptly(t.Context(), s.key(two))
		return errors.Is(err, cache.ErrNotFound)
	})
	s.delete(s.name)
	s.eventually("and is deleted", func() bool {
		_, err = p.GetPromptly(t.Context(), s.key(one))
		require.Error(t, err)
		return errors.Is(err, cache.ErrNotFound)
	})
}

func replaces(_ *testing.T, s *subject) {
	s.put(s.key(one), "first")
	s.put(s.key(one), "second")
	s.stands(s.key(one), "second")
}

func notAliased(t *testing.T, s *subject) {
	data := []byte("written")
	s.set(s.key(one), cache.Write{Data: data, Fence: s.begin(s.key(one)), TTL: long})
	copy(data, "changed")
	s.stands(s.key(one), "written")

	kept := s.look(s.key(one))
	s.put(s.key(one), "another")
	require.Equal(t, "written", string(kept.Data), "a receiver may keep what it was given")
}

func goneAfterTTL(t *testing.T, s *subject) {
	fence := s.begin(s.key(one))
	began := time.Now()
	s.set(s.key(one), cache.Write{Data: []byte("v"), Fence: fence, TTL: brief})
	for time.Since(began) < brief+slack {
		asked := time.Now()
		if s.look(s.key(one)).Data == nil {
			assert.GreaterOrEqual(t, time.Since(began), brief, "and not before its time")
			return
		}
		time.Sleep(max(time.Millisecond, time.Since(asked)))
	}
	s.absent(s.key(one))
	_, e, err := s.Begin(t.Context(), s.key(one), 0, long)
	require.NoError(t, err)
	require.Zero(t, e, "Begin doesn't return it either")
}

func tinyTTL(_ *testing.T, s *subject) {
	s.set(s.key(one), cache.Write{Data: []byte("v"), Fence: s.begin(s.key(one)), TTL: 1})
	time.Sleep(slack)
	s.absent(s.key(one))
}

func independentTTL(_ *testing.T, s *subject) {
	s.put(s.key(one), "long")
	s.set(s.key(two), cache.Write{Data: []byte("brief"), Fence: s.begin(s.key(two)), TTL: brief})
	time.Sleep(brief + slack)
	s.stands(s.key(one), "long")
}

// grain is how far two clocks may drift apart within a test.
const grain = time.Millisecond

func ageGrows(t *testing.T, s *subject) {
	fence := s.begin(s.key(one))
	before := time.Now()
	s.set(s.key(one), write("v", fence))
	after := time.Now()
	for range 4 {
		asked := time.Now()
		viaGet := s.look(s.key(one))
		s.ageIs(t, viaGet, asked.Sub(after), time.Since(before))

		asked = time.Now()
		_, viaBegin, err := s.Begin(t.Context(), s.key(one), 0, long)
		require.NoError(t, err)
		s.ageIs(t, viaBegin, asked.Sub(after), time.Since(before))
		time.Sleep(brief / 3)
	}
}

func (s *subject) ageIs(t *testing.T, e cache.Entry, atLeast, atMost time.Duration) {
	t.Helper()
	require.GreaterOrEqual(t, e.Age, atLeast-grain, "an age is never below the truth")
	require.LessOrEqual(t, e.Age, atMost+slack, "an age is too high at most by the time of a step")
}

func ageStartsAgain(t *testing.T, s *subject) {
	s.put(s.key(one), "old")
	time.Sleep(brief)
	require.GreaterOrEqual(t, s.look(s.key(one)).Age, brief-grain)
	s.put(s.key(one), "new")
	require.Less(t, s.look(s.key(one)).Age, brief)
}

func withoutDataRemoves(_ *testing.T, s *subject) {
	s.put(s.key(one), "v")
	s.put(s.key(two), "w")
	s.set(s.key(one), cache.Write{Fence: s.begin(s.key(one))})
	s.absent(s.key(one))
	s.stands(s.key(two), "w")

	s.put(s.key(one), "v")
	s.set(s.key(one), cache.Write{Fence: s.begin(s.key(one)), Sole: true})
	s.absent(s.key(one))
	s.absent(s.key(two))
}

// strange are names that a store may be tempted to change, cut or read.
var strange = []string{
	" ", "a", "a ", " a", "A", "ab", "a:b", "a:", ":a", "a/../b", "*", "?", "[a]", "%00", "\x00", "a\x00", "a\x00b",
	"\r\n", "a\r\nb", "a\nb", "\t", "\xff", "\xff\xfe", "a\xc3", "\u00e9", "e\u0301", "\ufffd", "0", "-1", "sha256#",
	"{", "}", "{}", "}{", "{}x", "x{}", "}x", "a}b", "a}c", "{a}", "{a}b", "{a}{b}", "user:{42}:x", "tpl{{.ID}}", `json{"id":1}`,
	strings.Repeat("k", 511), strings.Repeat("k", 512), strings.Repeat("\xff", 512), strings.Repeat("\x00", 512), strings.Repeat("}", 512),
}

func independentNames(t *testing.T, s *subject) {
	key := func(name string) cache.Key { return cache.Key{Name: name, Schema: one} }
	s.delete(strange...) // another property may have left some
	for _, name := range strange {
		s.put(key(name), name)
	}
	for _, name := range strange {
		s.stands(key(name), name)
	}
	for i, name := range strange {
		fence := s.begin(key(name))
		s.delete(name)
		s.absent(key(name))
		s.refused(key(name), write("late", fence))
		if i+1 < len(strange) {
			s.stands(key(strange[i+1]), strange[i+1])
		}
	}
	require.Empty(t, s.look(key(strange[0])))
}

func independentSchemas(_ *testing.T, s *subject) {
	s.put(s.key(one), "1")
	s.absent(s.key(two))
	s.put(s.key(two), "2")
	s.stands(s.key(one), "1")
	s.stands(s.key(two), "2")
}
