package redistest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

func TestWhatClientsSendIsCounted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	require.NoError(t, c.Set(t.Context(), "before", "v", 0).Err())

	counter := redistest.Commands(t, s)
	require.NoError(t, c.Set(t.Context(), "a key", `say "hi"`, 0).Err())
	require.NoError(t, c.Get(t.Context(), "a key").Err())
	require.ErrorIs(t, c.Get(t.Context(), "\x00] \xff{}\r\n").Err(), redis.Nil)
	require.ErrorIs(t, c.Get(t.Context(), "").Err(), redis.Nil)
	require.NoError(t, c.Set(t.Context(), "big", strings.Repeat("x", 1<<20), 0).Err())
	require.Error(t, c.Incr(t.Context(), "big").Err(), "a command that fails is a command")
	require.NoError(t, c.Publish(t.Context(), "news", "n").Err())

	want := []string{
		`SET "a key" "say \"hi\""`,
		`GET "a key"`,
		`GET "\x00] \xff{}\r\n"`,
		`GET ""`,
		`SET big ` + strings.Repeat("x", 100) + `…(1048476 more)`,
		`INCR big`,
		`PUBLISH news n`,
	}
	assert.Equal(t, want, counter.Stop())
	require.NoError(t, c.Get(t.Context(), "a key").Err())
	assert.Equal(t, want, counter.Stop(), "stopped is stopped")
}

func TestAScriptCountsOnceWhateverItRuns(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	counter := redistest.Commands(t, s)
	script := redis.NewScript(`for i = 1, 3 do redis.call("INCR", KEYS[1]) end return redis.call("TIME")`)
	require.NoError(t, script.Run(t.Context(), c, []string{"k"}).Err())
	require.NoError(t, script.Run(t.Context(), c, []string{"k"}).Err())

	got := counter.Stop()
	require.Len(t, got, 3)
	assert.Equal(t, "EVALSHA "+script.Hash()+" 1 k", got[0], "not known yet")
	assert.Contains(t, got[1], "EVAL ")
	assert.Equal(t, got[0], got[2])
}

func TestSettingUpAConnectionDoesNotCount(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--user", "u", "on", ">p", "~*", "&*", "+@all")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			counter := redistest.Commands(t, s)
			c := redistest.Client(t, s, func(o *redis.Options) {
				o.Protocol, o.DB, o.ClientName = protocol, 3, "somebody"
				o.Username, o.Password = "u", "p"
			})
			require.NoError(t, c.Ping(t.Context()).Err())
			assert.Equal(t, []string{"PING"}, counter.Stop())
		})
	}
}

func TestNothingOfManyClientsIsMissed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	counter := redistest.Commands(t, s)
	var wg sync.WaitGroup
	for range 10 {
		c := redistest.Client(t, s)
		wg.Go(func() {
			for range 200 {
				assert.NoError(t, c.Incr(t.Context(), "k").Err())
			}
		})
	}
	wg.Wait()
	assert.Len(t, counter.Stop(), 2_000)
}

func TestACounterLeavesNoConnection(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	for range 3 {
		assert.Empty(t, redistest.Commands(t, s).Stop())
	}
	assert.Eventually(t, func() bool {
		list, err := c.ClientList(t.Context()).Result()
		return err == nil && strings.Count(list, "\n") == 1
	}, 10*time.Second, 10*time.Millisecond)
}
