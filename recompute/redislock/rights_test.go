package redislock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// entitled connects as a user who has these rights and no others.
func entitled(t *testing.T, admin *redis.Client, rights []string) *redis.Client {
	t.Helper()
	rule := []any{"ACL", "SETUSER", "entitled", "reset", "on", "nopass"}
	for _, right := range rights {
		rule = append(rule, right)
	}
	require.NoError(t, admin.Do(t.Context(), rule...).Err())
	return to(t, admin.Options().Addr, func(o *redis.Options) { o.Username, o.Password = "entitled", "any" })
}

// lifeOf takes all the steps there are, and says what came of each.
func lifeOf(t *testing.T, admin, c *redis.Client) map[string]error {
	t.Helper()
	require.NoError(t, admin.FlushAll(t.Context()).Err())
	l, happened := fenced(t, c), make(map[string]error)
	for range 2 { // with a script that is loaded, too
		lease, err := l.Acquire(t.Context(), "key", long)
		happened["acquire"] = errors.Join(happened["acquire"], err)
		if err == nil {
			happened["extend"] = errors.Join(happened["extend"], lease.Extend(t.Context(), long))
			happened["release"] = errors.Join(happened["release"], lease.Release(t.Context()))
		}
		require.NoError(t, admin.Del(t.Context(), "bellwether:lease:{key}").Err())
	}
	holder := acquire(t, fenced(t, admin), "held", long)
	_, happened["refusal"] = l.Acquire(t.Context(), "held", long)
	if errors.Is(happened["refusal"], recompute.ErrHeld) {
		happened["refusal"] = nil
	}
	happened["waking"] = woken(t, admin, func() { require.NoError(t, holder.Release(t.Context())) }, l, "held")
	lease, err := l.Acquire(t.Context(), "held", long)
	if err == nil && happened["release"] == nil {
		happened["telling"] = woken(t, admin, func() { require.NoError(t, lease.Release(t.Context())) }, fenced(t, admin), "held")
	}
	return happened
}

var errAsleep = errors.New("not woken")

// woken releases once the locker listens, and says whether it heard.
func woken(t *testing.T, admin *redis.Client, release func(), l *redislock.Locker, key string) error {
	t.Helper()
	heard, stop := l.Wake(t.Context(), key)
	defer stop()
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if admin.PubSubNumSub(t.Context(), "bellwether:leases").Val()["bellwether:leases"] > 0 {
			break
		}
	}
	select {
	case <-heard: // it says so when it can hear
	case <-time.After(100 * time.Millisecond):
	}
	release()
	select {
	case <-heard:
		return nil
	case <-time.After(300 * time.Millisecond):
		return errAsleep
	}
}

func TestTheRightsAreEnoughAndEachIsNeeded(t *testing.T) {
	t.Parallel()
	for mode, c := range map[string]struct {
		rights string
		needs  map[string]string // what does not work without it
	}{
		"scripts": {redislock.Rights, map[string]string{
			"+eval": "acquire", "+evalsha": "acquire", "+mget": "acquire", "+set": "acquire", "+time": "acquire",
			"+pexpire": "extend", "+del": "release", "+pttl": "refusal", "+subscribe": "waking", "+publish": "telling",
			"+zadd": "", "+zpopmin": "", // all are woken together
			"~bellwether:*": "acquire", "&bellwether:*": "waking",
		}},
		"transactions": {redislock.RightsWithoutScripts, map[string]string{
			"+watch": "acquire", "+multi": "acquire", "+exec": "acquire", "+get": "acquire", "+set": "acquire", "+exists": "acquire", "+time": "acquire",
			"+pttl": "acquire", "+pexpire": "extend", "+del": "release", "+subscribe": "waking", "+publish": "telling",
			"+unwatch":      "", // only a connection is used up
			"~bellwether:*": "acquire", "&bellwether:*": "waking",
		}},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			admin := redistest.Client(t, redistest.Start(t))
			if mode == "transactions" && !slices.Contains(lacks(t, admin), "set") {
				c.needs["+pexpire"] = "" // a SET extends
			}
			rights := strings.Fields(c.rights)
			for step, err := range lifeOf(t, admin, entitled(t, admin, rights)) {
				require.NoError(t, err, step)
			}
			require.Len(t, c.needs, len(rights))
			for i, right := range rights {
				t.Run("all but "+right, func(t *testing.T) {
					happened := lifeOf(t, admin, entitled(t, admin, slices.Delete(slices.Clone(rights), i, i+1)))
					for step, err := range happened {
						assert.NotErrorIs(t, err, recompute.ErrHeld, step)
						assert.NotErrorIs(t, err, recompute.ErrLost, step)
					}
					broken := c.needs[right]
					if broken == "" {
						assert.NoError(t, errors.Join(happened["acquire"], happened["extend"], happened["release"]))
						return
					}
					require.Error(t, happened[broken])
					if err := happened[broken]; err != errAsleep {
						assert.ErrorContains(t, err, "redislock.Rights", "where to look")
					}
					if name, is := strings.CutPrefix(right, "+"); is && mode == "transactions" && happened[broken] != errAsleep {
						assert.ErrorContains(t, happened[broken], "'"+name+"'", "what is missing")
					}
					if happened["acquire"] != nil {
						assert.Empty(t, locks(t, admin), "nothing is left")
					}
				})
			}
		})
	}
}
