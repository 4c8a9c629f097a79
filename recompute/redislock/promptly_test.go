package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// A client with its default options dials five times before it says that nobody is there.
func TestARefusedConnectionIsToldPromptlyWhateverTheClient(t *testing.T) {
	s := redistest.Start(t)
	for says, change := range map[string]func(*redis.Options){
		"default":          func(*redis.Options) {},
		"one dial":         func(o *redis.Options) { o.DialerRetries = 1 },
		"keeps deadlines":  func(o *redis.Options) { o.ContextTimeoutEnabled = true },
		"without retrying": func(o *redis.Options) { o.MaxRetries = -1 },
	} {
		steps := redislock.NewSteps(redistest.Client(t, s, change), redislock.StepOptions{})
		ping := func() error {
			_, err := redislock.Promptly(t.Context(), steps, func(ctx context.Context, c *redis.Client) (string, error) { return c.Ping(ctx).Result() })
			return err
		}
		require.NoError(t, ping(), says)
		require.NoError(t, s.Kill())
		began := time.Now()
		require.Eventually(t, func() bool { return errors.Is(ping(), redislock.ErrConnectionRefused) }, time.Second, 10*time.Millisecond, says)
		assert.Less(t, time.Since(began), 800*time.Millisecond, says)
		for range 3 {
			began = time.Now()
			require.ErrorIs(t, ping(), redislock.ErrConnectionRefused, says)
			assert.Less(t, time.Since(began), 150*time.Millisecond, says)
		}
		require.NoError(t, s.Restart())
		require.Eventually(t, func() bool { return ping() == nil }, 5*time.Second, 10*time.Millisecond, says)
	}
}
