package stale_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/stale"
)

func TestPhase(t *testing.T) {
	t.Run("windows follow one another, each without its end", func(t *testing.T) {
		for _, tc := range []struct {
			age  time.Duration
			want stale.Phase
		}{
			{0, stale.Fresh},
			{10*time.Minute - 1, stale.Fresh},
			{10 * time.Minute, stale.WhileRevalidate},
			{15*time.Minute - 1, stale.WhileRevalidate},
			{15 * time.Minute, stale.IfError},
			{75*time.Minute - 1, stale.IfError},
			{75 * time.Minute, stale.Expired},
			{forever, stale.Expired},
		} {
			assert.Equal(t, tc.want, news.Phase(tc.age), "at age %v", tc.age)
		}
	})
	t.Run("a window of zero length is skipped", func(t *testing.T) {
		assert.Equal(t, stale.Expired, stale.Policy{Fresh: 1}.Phase(1))
		assert.Equal(t, stale.IfError, stale.Policy{Fresh: 1, IfError: 1}.Phase(1))
	})
	t.Run("the zero policy finds everything expired", func(t *testing.T) {
		for _, age := range []time.Duration{-forever, -1, 0, 1, forever} {
			assert.Equal(t, stale.Expired, stale.Policy{}.Phase(age), "at age %v", age)
		}
	})
	t.Run("an entry dated in the future is refreshed", func(t *testing.T) {
		assert.Equal(t, stale.WhileRevalidate, news.Phase(-1))
		assert.Equal(t, stale.IfError, stale.Policy{Fresh: 1, IfError: 1}.Phase(-time.Hour))
		assert.Equal(t, stale.Expired, stale.Policy{Fresh: forever}.Phase(-forever-1))
	})
	t.Run("an entry dated in the future is never fresh", rapid.MakeCheck(func(t *rapid.T) {
		p := anything().Draw(t, "policy")
		age := rapid.Map(rapid.Int64Max(-1), toDuration).Draw(t, "age")
		assert.Less(t, p.Phase(age), stale.Fresh)
		assert.Equal(t, p.Phase(max(p.Fresh, 0)), p.Phase(age))
	}))
	t.Run("a value never gets more useful as it ages", rapid.MakeCheck(func(t *rapid.T) {
		p := anything().Draw(t, "policy")
		young, old := window(0).Draw(t, "young"), window(0).Draw(t, "old")
		young, old = min(young, old), max(young, old)
		assert.GreaterOrEqual(t, p.Phase(young), p.Phase(old))
	}))
	t.Run("a value is at once servable exactly to the end of its first two windows", rapid.MakeCheck(func(t *rapid.T) {
		p := valid().Draw(t, "policy")
		age := window(0).Draw(t, "age")
		// uint64 holds the sum of two Durations without wrapping.
		inside := uint64(age) < min(uint64(p.Fresh)+uint64(p.WhileRevalidate), uint64(forever))
		assert.Equal(t, inside, p.Phase(age) >= stale.WhileRevalidate)
	}))
}

func TestPhasesHaveNamesAndAnOrder(t *testing.T) {
	var zero stale.Phase
	assert.Equal(t, "expired", zero.String())
	assert.Equal(t, "if-error", stale.IfError.String())
	assert.Equal(t, "while-revalidate", stale.WhileRevalidate.String())
	assert.Equal(t, "fresh", stale.Fresh.String())
	assert.Equal(t, "Phase(9)", stale.Phase(9).String())
	assert.IsIncreasing(t, []stale.Phase{stale.Expired, stale.IfError, stale.WhileRevalidate, stale.Fresh})
}
