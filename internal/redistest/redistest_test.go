package redistest_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
)

func TestClientAndServerEndWithTheirTest(t *testing.T) {
	var s *redisserver.Server
	var c *redis.Client
	t.Run("one", func(t *testing.T) {
		s = redistest.Start(t)
		c = redistest.Client(t, s, func(o *redis.Options) { o.ClientName = "one" })
		name, err := c.ClientGetName(t.Context()).Result()
		require.NoError(t, err)
		assert.Equal(t, "one", name)
	})
	if c == nil {
		t.Skip("there is no redis-server")
	}
	assert.ErrorIs(t, c.Ping(t.Context()).Err(), redis.ErrClosed)
	assert.Zero(t, s.Pid())
}

func TestAClientThatTheTestClosedIsLeftInPeace(t *testing.T) {
	t.Parallel()
	require.NoError(t, redistest.Client(t, redistest.Start(t)).Close())
}

// ending is a test that notes how it ends, and keeps that to itself.
type ending struct {
	testing.TB
	how, why string
}

func (e *ending) Helper()        {}
func (e *ending) Skip(a ...any)  { e.end("skipped", a) }
func (e *ending) Fatal(a ...any) { e.end("failed", a) }

func (e *ending) end(how string, why []any) {
	e.how, e.why = how, fmt.Sprint(why...)
	panic(e) // t.Skip doesn't return either
}

func TestWhereRedisIsNotInstalled(t *testing.T) {
	for ci, want := range map[string]string{"": "skipped", "false": "skipped", "true": "failed"} {
		t.Run("CI="+ci, func(t *testing.T) {
			t.Setenv("PATH", t.TempDir())
			t.Setenv("CI", ci)
			e := &ending{TB: t}
			assert.PanicsWithValue(t, e, func() { redistest.Start(e) })
			assert.Equal(t, want, e.how)
			assert.Contains(t, e.why, "redis-server is not installed")
		})
	}
}

func TestKeysAreShownWithTheTimeTheyHaveLeft(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t))
	assert.Empty(t, redistest.Keys(t, c))

	require.NoError(t, c.Set(t.Context(), "a minute", "v", time.Minute).Err())
	require.NoError(t, c.Set(t.Context(), "for ever", "v", 0).Err())
	require.NoError(t, c.HSet(t.Context(), "a hash", "f", "v").Err())
	for i := range 2_500 { // more than one page of SCAN
		require.NoError(t, c.Set(t.Context(), "k"+strconv.Itoa(i), "v", time.Hour).Err())
	}
	keys := redistest.Keys(t, c)
	assert.Len(t, keys, 2_503)
	assert.InDelta(t, time.Minute, keys["a minute"], float64(10*time.Second))
	assert.EqualValues(t, -1, keys["for ever"])
	assert.EqualValues(t, -1, keys["a hash"])
}
