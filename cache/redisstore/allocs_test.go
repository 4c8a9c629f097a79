//go:build !race

package redisstore_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/redistest"
)

// A hit allocates at most ten times more often than a bare GET. (The race detector allocates too.)
func TestAHitAllocatesLittleMoreThanABareGet(t *testing.T) {
	s := serve(t)
	rdb := redistest.Client(t, s)
	require.NoError(t, rdb.Set(t.Context(), "raw", "v", 0).Err())
	r := join(t, s.Addr, plain[string])
	get(t, r, "k", (&origin[string]{value: "v"}).compute, cache.Computed)
	compute := never[string](t)
	raw := testing.AllocsPerRun(1000, func() { _ = rdb.Get(t.Context(), "raw").Err() })
	hit := testing.AllocsPerRun(1000, func() { _, _ = r.GetOrCompute(t.Context(), "k", compute) })
	t.Logf("a bare GET allocates %v times, a hit %v times", raw, hit)
	assert.LessOrEqual(t, hit, raw+10)
}
