package stale_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/stale"
)

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, tc := range map[string]struct {
		spoil func(*stale.Policy)
		want  string
	}{
		"Fresh is required":          {func(p *stale.Policy) { p.Fresh = 0 }, "stale: Policy.Fresh is 0s, must be at least 1ms"},
		"Fresh below zero":           {func(p *stale.Policy) { p.Fresh = -time.Second }, "stale: Policy.Fresh is -1s, must be at least 1ms"},
		"WhileRevalidate below zero": {func(p *stale.Policy) { p.WhileRevalidate = -1 }, "stale: Policy.WhileRevalidate is -1ns, must be 0 or at least 1ms"},
		"IfError below zero":         {func(p *stale.Policy) { p.IfError = -1 }, "stale: Policy.IfError is -1ns, must be 0 or at least 1ms"},
		"Keep below zero":            {func(p *stale.Policy) { p.Keep = -1 }, "stale: Policy.Keep is -1ns, must be 0 or at least 1ms"},
		"Cooldown below zero":        {func(p *stale.Policy) { p.Cooldown = -1 }, "stale: Policy.Cooldown is -1ns, must be 0 or at least 1ms"},
		"Negative below zero":        {func(p *stale.Policy) { p.Negative = -1 }, "stale: Policy.Negative is -1ns, must be 0 or at least 1ms"},
		"Fresh in nanoseconds": {func(p *stale.Policy) { p.Fresh = 60 },
			"stale: Policy.Fresh is 60ns, must be at least 1ms; a bare number means nanoseconds"},
		"WhileRevalidate in nanoseconds": {func(p *stale.Policy) { p.WhileRevalidate = time.Millisecond - 1 },
			"stale: Policy.WhileRevalidate is 999.999µs, must be 0 or at least 1ms; a bare number means nanoseconds"},
		"IfError in nanoseconds": {func(p *stale.Policy) { p.IfError = time.Millisecond - 1 },
			"stale: Policy.IfError is 999.999µs, must be 0 or at least 1ms; a bare number means nanoseconds"},
		"Keep in nanoseconds": {func(p *stale.Policy) { p.Keep = time.Millisecond - 1 },
			"stale: Policy.Keep is 999.999µs, must be 0 or at least 1ms; a bare number means nanoseconds"},
		"Cooldown in nanoseconds": {func(p *stale.Policy) { p.Cooldown = time.Millisecond - 1 },
			"stale: Policy.Cooldown is 999.999µs, must be 0 or at least 1ms; a bare number means nanoseconds"},
		"Negative in nanoseconds": {func(p *stale.Policy) { p.Negative = time.Millisecond - 1 },
			"stale: Policy.Negative is 999.999µs, must be 0 or at least 1ms; a bare number means nanoseconds"},
		"Jitter below zero":            {func(p *stale.Policy) { p.Jitter = -0.1 }, "stale: Policy.Jitter is -0.1, must be from 0 to 1"},
		"Jitter in percent":            {func(p *stale.Policy) { p.Jitter = 10 }, "stale: Policy.Jitter is 10, must be from 0 to 1"},
		"Jitter that is no number":     {func(p *stale.Policy) { p.Jitter = nan }, "stale: Policy.Jitter is NaN, must be from 0 to 1"},
		"Jitter without end":           {func(p *stale.Policy) { p.Jitter = inf }, "stale: Policy.Jitter is +Inf, must be from 0 to 1"},
		"Beta below zero":              {func(p *stale.Policy) { p.Beta = -1 }, "stale: Policy.Beta is -1, must be finite and ≥ 0"},
		"Beta that is no number":       {func(p *stale.Policy) { p.Beta = nan }, "stale: Policy.Beta is NaN, must be finite and ≥ 0"},
		"Beta without end":             {func(p *stale.Policy) { p.Beta = inf }, "stale: Policy.Beta is +Inf, must be finite and ≥ 0"},
		"Beta without end, below zero": {func(p *stale.Policy) { p.Beta = -inf }, "stale: Policy.Beta is -Inf, must be finite and ≥ 0"},
		"all faults are told, not one": {func(p *stale.Policy) { p.Fresh, p.Beta = 0, -2 },
			"stale: Policy.Fresh is 0s, must be at least 1ms\nstale: Policy.Beta is -2, must be finite and ≥ 0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := news
			tc.spoil(&p)
			assert.EqualError(t, p.Validate(), tc.want)
		})
	}
	t.Run("the zero policy lacks Fresh and nothing else", func(t *testing.T) {
		assert.EqualError(t, stale.Policy{}.Validate(), "stale: Policy.Fresh is 0s, must be at least 1ms")
	})
	t.Run("Fresh alone is enough", func(t *testing.T) {
		assert.NoError(t, stale.Policy{Fresh: time.Millisecond}.Validate())
	})
	t.Run("the ends of each range are allowed", rapid.MakeCheck(func(t *rapid.T) {
		p := valid().Draw(t, "policy")
		p.Jitter = rapid.SampledFrom([]float64{0, p.Jitter, 1}).Draw(t, "Jitter")
		p.Beta = rapid.SampledFrom([]float64{0, p.Beta, math.MaxFloat64}).Draw(t, "Beta")
		assert.NoError(t, p.Validate())
	}))
}
