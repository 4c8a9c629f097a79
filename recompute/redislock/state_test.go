package redislock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
)

func TestALockerWorksAfterTheServerForgotItsScripts(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t))
	l := patient(c)
	warm(t, l)
	forget := func() { require.NoError(t, c.ScriptFlush(t.Context()).Err()) }
	forget()
	lease := acquire(t, l, "key", long)
	forget()
	require.NoError(t, lease.Extend(t.Context(), long))
	forget()
	require.NoError(t, lease.Release(t.Context()))
	assert.Empty(t, redistest.Keys(t, c))
}

func TestAServerWithoutMemoryExtendsAndReleases(t *testing.T) {
	t.Parallel()
	for how, client := range steps {
		t.Run(how, func(t *testing.T) {
			c := redistest.Client(t, redistest.Start(t))
			l := patient(client(t, c))
			lease := acquire(t, l, "key", long)
			full := func(yes string) { require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", yes).Err()) }
			full("1")
			_, refused := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error { p.PExpire(t.Context(), "key", long); return nil })
			if how == "scripts" || refused == nil {
				require.NoError(t, lease.Extend(t.Context(), long))
			} else { // Redis takes no transaction then, whatever is in it
				require.ErrorContains(t, lease.Extend(t.Context(), long), "OOM")
			}
			if how != "transactions" || refused == nil {
				require.NoError(t, lease.Release(t.Context()))
			} else {
				require.ErrorContains(t, lease.Release(t.Context()), "OOM")
				full("0")
				noLock(t, c, 0) // it is tried again
				full("1")
			}
			require.Empty(t, locks(t, c))
			_, err := l.Acquire(t.Context(), "key", long)
			require.ErrorContains(t, err, "OOM")
			require.NotErrorIs(t, err, recompute.ErrHeld)
			noLock(t, c, 0)
			full("0")
			insist(t, func() error { _, err := l.Acquire(t.Context(), "key", long); return err })
		})
	}
}

// as connects as a user who may do everything but what rules take away.
func as(t testing.TB, admin *redis.Client, rules ...any) *redis.Client {
	t.Helper()
	user := append([]any{"ACL", "SETUSER", "limited", "reset", "on", "nopass", "~*", "&*", "+@all"}, rules...)
	require.NoError(t, admin.Do(t.Context(), user...).Err())
	return to(t, admin.Options().Addr, func(o *redis.Options) { o.Username, o.Password = "limited", "any" })
}

func TestALockerWorksWithoutTheRightToAnnounce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin := redistest.Client(t, s)
	for name, rule := range map[string]string{"no command": "-publish", "no channel": "resetchannels"} {
		t.Run(name, func(t *testing.T) {
			c := as(t, admin, rule)
			require.ErrorContains(t, c.Publish(t.Context(), channel, "x").Err(), "NOPERM")
			l := patient(c)
			counter := redistest.Commands(t, s)
			for range 2 {
				lease := acquire(t, l, "key", long)
				require.NoError(t, lease.Extend(t.Context(), long))
				require.NoError(t, lease.Release(t.Context()))
				require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
			}
			assert.Len(t, counter.Stop(), 2*4, "no step is tried again for it")
			assert.Empty(t, redistest.Keys(t, admin))
		})
	}
}

// Whichever command a user may not use: there is an error, and neither a lease nor "held" nor "lost" is made of it.
func TestALockerWithoutRightsSaysSo(t *testing.T) {
	t.Parallel()
	admin := redistest.Client(t, redistest.Start(t))
	for _, rule := range []string{"-eval -watch", "-mget", "-set", "-@scripting -@transaction", "resetkeys"} {
		t.Run(rule, func(t *testing.T) {
			var rules []any
			for rule := range strings.FieldsSeq(rule) {
				rules = append(rules, rule)
			}
			l := patient(as(t, admin, rules...))
			_, err := l.Acquire(t.Context(), "key", 100*time.Millisecond)
			require.Error(t, err)
			require.NotErrorIs(t, err, recompute.ErrHeld)
			require.Empty(t, locks(t, admin))
		})
	}
	t.Run("-mget while another holds it", func(t *testing.T) {
		lease := acquire(t, patient(admin), "key", long)
		_, err := patient(as(t, admin, "-mget")).Acquire(t.Context(), "key", long)
		require.Error(t, err)
		require.NoError(t, lease.Release(t.Context()), "it is still the holder's")
	})
}

// What a script may not do, each server says in its own words.
func TestWhoMissesARightIsToldWhereToLook(t *testing.T) {
	t.Parallel()
	w := through(t)
	l := patient(w.inside)
	warm(t, l)
	for _, says := range []string{
		"ERR The user executing the script can't run this command or subcommand script: 5c208b, on @user_script:30.",        // 7.0
		"ERR ACL failure in script: User u has no permissions to run the 'set' command script: 5c208b, on @user_script:42.", // 7.2, Valkey
	} {
		w.proxy.On(faultproxy.Rule{Marker: "evalsha", Do: faultproxy.Answer, Say: "-" + says})
		_, err := l.Acquire(t.Context(), "key", long)
		require.ErrorContains(t, err, "redislock.Rights")
		w.proxy.Heal()
	}
}

func TestStatesOfAServerAreNeitherHeldNorLost(t *testing.T) {
	t.Parallel()
	w := through(t)
	for _, state := range []string{
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"CLUSTERDOWN The cluster is down",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"NOREPLICAS Not enough good replicas to write.",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"ERR max number of clients reached",
		"NOAUTH Authentication required.",
	} {
		t.Run(state, func(t *testing.T) {
			l := newLocker(w.inside) // of its own, since its breakers will be open
			warm(t, l)
			lease := acquire(t, l, "key", long)
			hits := w.proxy.On(faultproxy.Rule{Marker: "evalsha", Do: faultproxy.Answer, Say: "-" + state})
			defer func() {
				w.proxy.Heal()
				noLock(t, w.outside, 0)
			}()
			timely(t, budget, func() {
				_, err := l.Acquire(t.Context(), "other", 50*time.Millisecond)
				require.Error(t, err)
				require.NotErrorIs(t, err, recompute.ErrHeld)
			})
			timely(t, budget, func() {
				err := lease.Extend(t.Context(), long)
				require.Error(t, err)
				require.NotErrorIs(t, err, recompute.ErrLost)
			})
			err := lease.Release(t.Context())
			require.Error(t, err)
			require.NotErrorIs(t, err, recompute.ErrLost)
			require.Positive(t, hits.Count())
		})
	}
}
