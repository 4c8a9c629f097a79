package redislock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

func TestAServerThatDoesNotAnswerKeepsNoStepFromAnother(t *testing.T) {
	t.Parallel()
	silent, well := redistest.Start(t), redistest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{
		Addrs:              map[string]string{"silent": silent.Addr, "well": well.Addr},
		HeartbeatFrequency: time.Hour, // it is not told that one is away
	})
	t.Cleanup(func() { assert.NoError(t, ring.Close()) })
	keys := make(map[string][]string)
	for i := range 100 {
		key := fmt.Sprint(i)
		client, err := ring.GetShardClientForKey(space.Key("l", key))
		require.NoError(t, err)
		keys[client.Options().Addr] = append(keys[client.Options().Addr], key)
	}
	told := new(states)
	l := redislock.On(redislock.NewSteps(ring, redislock.StepOptions{Breaker: told.tell}), space, "")
	acquire(t, l, keys[silent.Addr][0], long)
	acquire(t, l, keys[well.Addr][0], long)

	require.NoError(t, silent.Pause())
	for _, key := range keys[silent.Addr][1:4] {
		_, err := l.Acquire(t.Context(), key, 100*time.Millisecond)
		require.ErrorIs(t, err, redislock.ErrBudget)
	}
	_, err := l.Acquire(t.Context(), keys[silent.Addr][4], 100*time.Millisecond)
	require.ErrorIs(t, err, redislock.ErrOpen)
	_, err = l.Acquire(t.Context(), keys[well.Addr][1], long)
	require.NoError(t, err)
	open, _ := told.all()
	assert.Equal(t, "link open", open[0])
	require.NoError(t, silent.Resume())
	require.Eventually(t, func() bool {
		_, err := l.Acquire(t.Context(), keys[silent.Addr][5], time.Second)
		return err == nil
	}, soon, time.Millisecond)
}

// For as long as a slot is being moved, scripts with several keys may be refused: that says nothing of any other slot.
func TestASlotThatIsNotServedKeepsNoStepFromAnother(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN Hash slot not served"} {
		t.Run(reply, func(t *testing.T) {
			t.Parallel()
			w := through(t)
			l, _, told := breaking(t, w.inside)
			released := w.proxy.On(faultproxy.Rule{Marker: script(t, "release"), Do: faultproxy.Delay})
			w.proxy.On(faultproxy.Rule{Marker: "{moving}", Do: faultproxy.Answer, Say: "-" + reply})
			for range 4 {
				timely(t, budget, func() {
					_, err := l.Acquire(t.Context(), "moving", time.Second)
					require.Error(t, err)
					require.NotErrorIs(t, err, recompute.ErrHeld)
					require.NotErrorIs(t, err, redislock.ErrOpen)
				})
			}
			acquire(t, l, "other", long)
			open, _ := told.all()
			assert.Empty(t, open)
			time.Sleep(300 * time.Millisecond)
			assert.Zero(t, released.Count(), "what was refused need not be taken back")
		})
	}
}
