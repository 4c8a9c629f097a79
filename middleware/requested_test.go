package middleware_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/middleware"
)

func TestWhatAClientDemands(t *testing.T) {
	minute, hour := time.Minute, time.Hour
	for _, c := range []struct {
		lines      []string
		age, fresh time.Duration
		must, want bool
	}{
		{nil, minute, hour, false, true},
		{nil, hour, hour, false, false},
		{[]string{"Cache-Control: no-cache"}, 0, hour, false, false},
		{[]string{"Pragma: no-cache"}, 0, hour, false, false},
		{[]string{"Pragma: x, No-Cache"}, 0, hour, false, false},
		{[]string{"Pragma: unknown"}, 0, hour, false, true},
		{[]string{"Pragma: no-cache", "Cache-Control: max-age=60"}, 0, hour, false, true},
		{[]string{"Cache-Control: max-age=0"}, 1, hour, false, false},
		{[]string{"Cache-Control: max-age=60"}, minute, hour, false, true},
		{[]string{"Cache-Control: max-age=60"}, minute + 1, hour, false, false},
		{[]string{"Cache-Control: max-age=60, max-age=9"}, minute, hour, false, false},
		{[]string{"Cache-Control: max-age=x"}, minute, hour, false, false},
		{[]string{"Cache-Control: min-fresh=3540"}, minute, hour, false, true},
		{[]string{"Cache-Control: min-fresh=3541"}, minute, hour, false, false},
		{[]string{"Cache-Control: min-fresh=9999, min-fresh=1"}, minute, hour, false, false},
		{[]string{"Cache-Control: max-stale=60"}, hour + minute, hour, false, true},
		{[]string{"Cache-Control: max-stale=60"}, hour + minute + 1, hour, false, false},
		{[]string{"Cache-Control: max-stale=60"}, hour + minute, hour, true, false},
		{[]string{"Cache-Control: max-stale"}, 99 * hour, hour, false, true},
		{[]string{"Cache-Control: max-stale=x"}, hour, hour, false, false},
		{[]string{"Cache-Control: max-stale, max-stale=1"}, hour + minute, hour, false, false},
		{[]string{"Cache-Control: max-stale=60, min-fresh=1"}, hour + minute, hour, false, false},
		{[]string{"Cache-Control: max-stale, max-age=60"}, 99 * hour, hour, false, false},
	} {
		q := middleware.ParseRequested(header(c.lines...))
		assert.Equal(t, c.want, middleware.Accepts(q, c.age, c.fresh, c.must), "%q at %v of %v", c.lines, c.age, c.fresh)
		assert.False(t, q.OnlyIfCached() || q.NoStore())
	}
	q := middleware.ParseRequested(header("Cache-Control: no-store, ONLY-IF-CACHED"))
	assert.True(t, q.OnlyIfCached() && q.NoStore() && middleware.Accepts(q, minute, hour, false))
}
