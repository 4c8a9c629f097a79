package redislock_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// deletions are the commands that delete what has a value, one on each kind of server.
var deletions = []string{"delex", "delifeq"}

// lacks returns those of SET … IFEQ and the deletions that the server doesn't have.
func lacks(t testing.TB, admin *redis.Client) (lacking []string) {
	t.Helper()
	for _, probe := range [][]any{{"set", "probe", "x", "ifeq", "x"}, {"delex", "probe", "ifeq", "x"}, {"delifeq", "probe", "x"}} {
		if err := admin.Do(t.Context(), probe...).Err(); err != nil && !errors.Is(err, redis.Nil) {
			lacking = append(lacking, probe[0].(string))
		}
	}
	return lacking
}

// having returns the address of a server that has SET … IFEQ and the deletion. What the one at addr lacks, an administrator's script does
// in its place: it is as atomic.
func having(t testing.TB, addr, deletion string) string {
	t.Helper()
	admin, p := to(t, addr), faultproxy.Start(t, addr)
	lacking := slices.DeleteFunc(lacks(t, admin), func(name string) bool { return name != "set" && name != deletion })
	const compared = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return false end return redis.call(ARGV[2], KEYS[1], unpack(ARGV, 3))"
	p.On(faultproxy.Rule{Marker: "ifeq", Do: faultproxy.Answer, Ask: func(words []string) string {
		if !slices.Contains(lacking, words[0]) {
			return ""
		}
		does, none := []any{words[len(words)-1], "del"}, ":0"
		if words[0] == "set" {
			does, none = []any{words[4], "set", words[2], words[5], words[6]}, "$-1"
		}
		switch reply, err := admin.Eval(t.Context(), compared, words[1:2], does...).Result(); {
		case errors.Is(err, redis.Nil):
			return none
		case err != nil:
			return "-" + err.Error()
		case reply == "OK":
			return "+OK"
		default:
			return fmt.Sprintf(":%v", reply)
		}
	}})
	return p.Addr
}

// conditional connects as a user who may run no scripts to a server that has the deletion.
func conditional(deletion string) func(testing.TB, *redis.Client) *redis.Client {
	return func(t testing.TB, admin *redis.Client) *redis.Client {
		t.Helper()
		user := as(t, admin, "-@scripting").Options()
		return to(t, having(t, admin.Options().Addr, deletion), func(o *redis.Options) { o.Username, o.Password = user.Username, user.Password })
	}
}

// transactions connects as a user who may run no scripts to a server that has no conditional commands.
func transactions(t testing.TB, admin *redis.Client) *redis.Client {
	t.Helper()
	user := as(t, admin, "-@scripting")
	if len(lacks(t, admin)) == 3 {
		return user
	}
	p := faultproxy.Start(t, admin.Options().Addr)
	p.On(faultproxy.Rule{Marker: "ifeq", Do: faultproxy.Answer, Say: "-ERR syntax error"})
	return to(t, p.Addr, func(o *redis.Options) { o.Username, o.Password = user.Options().Username, user.Options().Password })
}

// throughAs is a server behind a proxy, for one of the ways to take steps.
func throughAs(t testing.TB, client func(testing.TB, *redis.Client) *redis.Client, change ...func(*redis.Options)) trouble {
	t.Helper()
	s := redistest.Start(t)
	w := trouble{Server: s, outside: redistest.Client(t, s)}
	user := client(t, w.outside).Options()
	w.proxy = faultproxy.Start(t, user.Addr)
	w.inside = to(t, w.proxy.Addr, append(change, func(o *redis.Options) { o.Username, o.Password = user.Username, user.Password })...)
	return w
}

// throughHaving is a server that has the deletion, behind a proxy. Its user may run no scripts.
func throughHaving(t testing.TB, deletion string, change ...func(*redis.Options)) trouble {
	t.Helper()
	return throughAs(t, conditional(deletion), change...)
}

// sent counts without doing anything.
func (w trouble) sent(marker string) *faultproxy.Hits {
	return w.proxy.On(faultproxy.Rule{Marker: marker})
}

// life is that of one lease.
func life(t testing.TB, l recompute.Locker) {
	t.Helper()
	lease := acquire(t, l, "key", long)
	require.NoError(t, lease.Extend(t.Context(), long))
	require.NoError(t, lease.Release(t.Context()))
	require.ErrorIs(t, lease.Extend(t.Context(), long), recompute.ErrLost)
	require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
}

func TestWithoutScriptsExtensionAndReleaseAreOneCommandEachWhereTheServerHasThem(t *testing.T) {
	t.Parallel()
	for _, deletion := range deletions {
		t.Run(deletion, func(t *testing.T) {
			w := throughHaving(t, deletion)
			l := patient(w.inside)
			warm(t, l)
			lease := acquire(t, l, "key", 10*time.Second)
			all, announced := w.sent("\r\n"), w.sent("\r\npublish\r\n")
			require.NoError(t, lease.Extend(t.Context(), long))
			for _, ttl := range redistest.Keys(t, w.outside) {
				assert.InDelta(t, long, ttl, float64(5*time.Second))
			}
			require.NoError(t, lease.Release(t.Context()))
			require.Empty(t, redistest.Keys(t, w.outside))
			assert.Equal(t, 2, announced.Count())
			assert.Equal(t, 4, all.Count())
		})
	}
}

// Servers change, and what they say differs. A lease ends as it would have without such commands.
func TestAConditionalCommandThatIsRefusedIsNotSentAgain(t *testing.T) {
	t.Parallel()
	for _, deletion := range deletions {
		w := throughHaving(t, deletion)
		for _, says := range []string{
			"ERR unknown command 'delex', with args beginning with: 'bellwether:lease:{key}' 'ifeq' ",
			"ERR unknown command `delex`, with args beginning with: `bellwether:lease:{key}`, ",
			"ERR syntax error",
			"ERR wrong number of arguments for 'set' command",
			"ERR unsupported command 'delifeq'",
			"NOPERM User limited has no permissions to run the 'delifeq' command",
			"NOPERM this user has no permissions to run the 'delex' command or its subcommand",
		} {
			t.Run(deletion+" "+says, func(t *testing.T) {
				l := patient(w.inside)
				life(t, l)
				refused := w.proxy.On(faultproxy.Rule{Marker: "ifeq", Do: faultproxy.Answer, Say: "-" + says})
				life(t, l)
				w.proxy.Heal()
				require.Contains(t, []int{2, 3}, refused.Count()) // the deletion that the server never had was not sent again either
				again := w.sent("ifeq")
				life(t, l)
				assert.Zero(t, again.Count())
			})
		}
	}
}

func TestAStateThatPassesIsNoRefusalOfAConditionalCommand(t *testing.T) {
	t.Parallel()
	w := throughHaving(t, "delifeq")
	for _, says := range []string{
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
		"ERR max number of clients reached",
	} {
		t.Run(says, func(t *testing.T) {
			l := patient(to(t, w.proxy.Addr, func(o *redis.Options) { o.Username, o.Password, o.MaxRetries = "limited", "any", -1 }))
			warm(t, l)
			lease := acquire(t, l, "key", long)
			for _, step := range []func() error{
				func() error { return lease.Extend(t.Context(), long) },
				func() error { return lease.Release(t.Context()) },
			} {
				w.proxy.On(faultproxy.Rule{Marker: "ifeq", Nth: 1, Do: faultproxy.Answer, Say: "-" + says})
				err := step()
				w.proxy.Heal()
				if err != nil { // a release tries again
					require.ErrorContains(t, err, says)
					require.NotErrorIs(t, err, recompute.ErrLost)
				}
			}
			sent := w.sent("ifeq")
			warm(t, l)
			assert.Equal(t, 2, sent.Count())
		})
	}
}

func TestAConditionalReleaseWhoseReplyIsLostIsARelease(t *testing.T) {
	t.Parallel()
	for _, deletion := range deletions {
		for name, change := range clients {
			for how, fault := range map[string]faultproxy.Fault{"dropped": faultproxy.DropReply, "stalled": faultproxy.StallReply} {
				t.Run(deletion+" "+name+" "+how, func(t *testing.T) {
					w := throughHaving(t, deletion, change)
					w.loseReleased(t, must(w.inside, redislock.Options{Budget: time.Second}), deletion, fault)
				})
			}
		}
	}
}

func TestAConditionalReleaseThatIsTriedAgainTellsALossFromItsOwnWork(t *testing.T) {
	t.Parallel()
	for _, deletion := range deletions {
		throughHaving(t, deletion).tryForeignAgain(t, deletion)
	}
}

func TestAConditionalExtensionWhoseReplyIsLostIsAnExtension(t *testing.T) {
	t.Parallel()
	w := throughHaving(t, "delex")
	l := patient(w.inside)
	warm(t, l)
	lease := acquire(t, l, "key", 10*time.Second)
	hits := w.proxy.On(faultproxy.Rule{Marker: "ifeq", Nth: 1, Do: faultproxy.DropReply})
	again := w.sent("ifeq")
	require.NoError(t, lease.Extend(t.Context(), long))
	require.Equal(t, []int{1, 1}, []int{hits.Count(), again.Count()})
}

func TestAConditionalExtensionThatArrivesAfterTheReleaseChangesNothing(t *testing.T) {
	t.Parallel()
	w := throughHaving(t, "delifeq")
	l := patient(w.inside)
	warm(t, l)
	lease := acquire(t, l, "key", long)
	const late = 400 * time.Millisecond
	w.proxy.On(faultproxy.Rule{Marker: "ifeq", Nth: 1, Do: faultproxy.Delay, For: late})
	require.Error(t, lease.Extend(within(t, 50*time.Millisecond), long))
	require.NoError(t, lease.Release(t.Context()))
	noLock(t, w.outside, late)
}

// What takes back an acquire leaves a mark, which no conditional command does.
func TestAnAcquireIsNotTakenBackByAConditionalCommand(t *testing.T) {
	t.Parallel()
	w := throughHaving(t, "delifeq")
	l := must(w.inside, redislock.Options{Budget: time.Second, Unfenced: true})
	warm(t, l)
	const late = 2 * time.Second
	w.proxy.On(faultproxy.Rule{Marker: "\r\nexec\r\n", Nth: 1, Do: faultproxy.Delay, For: late})
	sent := w.sent("ifeq")
	_, err := l.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, redislock.ErrBudget)
	noLock(t, w.outside, late)
	assert.Zero(t, sent.Count())
	marked := func(key string) bool { return strings.HasPrefix(key, "bellwether:lease:{key}:") }
	assert.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(redistest.Keys(t, w.outside))), marked))
}
