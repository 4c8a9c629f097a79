package stale_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/stale"
)

func TestRetain(t *testing.T) {
	t.Run("is the sum of the windows", func(t *testing.T) {
		assert.Equal(t, 25*time.Hour+15*time.Minute, news.Retain())
		assert.Zero(t, stale.Policy{}.Retain())
	})
	t.Run("clamps instead of wrapping", func(t *testing.T) {
		assert.Equal(t, forever, stale.Policy{Fresh: forever, WhileRevalidate: 1}.Retain())
		assert.Equal(t, forever, stale.Policy{Fresh: 1, WhileRevalidate: forever, IfError: forever}.Retain())
		assert.Equal(t, forever, stale.Policy{Fresh: forever - 1, IfError: 1}.Retain())
	})
	t.Run("is no less than any window", rapid.MakeCheck(func(t *rapid.T) {
		p := anything().Draw(t, "policy")
		for _, w := range []time.Duration{0, p.Fresh, p.WhileRevalidate, p.IfError, p.Keep} {
			assert.GreaterOrEqual(t, p.Retain(), w)
		}
	}))
	t.Run("is where expired begins, and Keep longer", rapid.MakeCheck(func(t *rapid.T) {
		p := valid().Draw(t, "policy")
		assert.Equal(t, stale.Expired, p.Phase(p.Retain()))
		kept := p.Keep
		p.Keep = 0
		assert.Equal(t, stale.Expired, p.Phase(p.Retain()))
		if p.Retain() < forever-kept {
			assert.Equal(t, stale.Expired, p.Phase(p.Retain()+kept))
		}
		assert.NotEqual(t, stale.Expired, p.Phase(p.Retain()-1))
	}))
}

func TestAbsent(t *testing.T) {
	t.Run("is fresh for Negative and then of no use", func(t *testing.T) {
		a := news.Absent()
		assert.Equal(t, stale.Fresh, a.Phase(30*time.Second-1))
		assert.Equal(t, stale.Expired, a.Phase(30*time.Second))
		assert.Equal(t, 30*time.Second, a.Retain())
		assert.NoError(t, a.Validate())
	})
	t.Run("keeps what is no window", func(t *testing.T) {
		want := news
		want.Fresh, want.WhileRevalidate, want.IfError, want.Keep = want.Negative, 0, 0, 0
		assert.Equal(t, want, news.Absent())
		assert.Equal(t, want, news.Absent().Absent())
	})
	t.Run("without Negative remembers nothing", func(t *testing.T) {
		a := stale.Policy{Fresh: time.Hour, IfError: time.Hour, Jitter: 0.5, Beta: 1}.Absent()
		assert.Equal(t, stale.Expired, a.Phase(0))
		assert.Zero(t, a.Retain())
		assert.Zero(t, a.Spread(0.5).Retain())
	})
}
