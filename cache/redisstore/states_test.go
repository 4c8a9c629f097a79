package redisstore_test

import (
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// states are what a server can say instead of doing what it was asked.
var states = []string{
	"LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica.",
	"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
	"CLUSTERDOWN The cluster is down",
	"CLUSTERDOWN Hash slot not served",
	"TRYAGAIN Multiple keys request during rehashing of slot",
	"MOVED 3999 127.0.0.1:1",
	"ASK 3999 127.0.0.1:1",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
	"NOREPLICAS Not enough good replicas to write.",
	"NOPERM this user has no permissions to run the 'evalsha' command",
	"NOAUTH Authentication required.",
	"WRONGTYPE Operation against a key holding the wrong kind of value",
	"ERR max number of clients reached",
	"ERR Protocol error: invalid bulk length",
}

// Case 43: whatever a server says to one of the steps, or to all, the callers have their value, which is computed once; nothing is
// taken for "not found"; and once the server is well, all is as before, by itself.
func TestWhateverAServerSaysItsCallersHaveTheirValue(t *testing.T) {
	t.Parallel()
	asked := map[string][]string{"all": {"{k}"}} // step: bytes by which its commands are known
	for step, marker := range steps {
		asked[step] = []string{marker}
	}
	asked["get"] = append(asked["get"], "hget")
	for _, state := range states {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			proxy, b := faultproxy.Start(t, s.Addr), join[string](t, s.Addr)
			for step, markers := range asked {
				t.Run(step, func(t *testing.T) {
					a := join(t, proxy.Addr, plain[string])
					var hits []*faultproxy.Hits
					for _, marker := range markers {
						hits = append(hits, proxy.On(faultproxy.Rule{Marker: marker, Do: faultproxy.Answer, Say: "-" + state}))
					}
					if step == "get" || step == "all" {
						_, err := a.Get(t.Context(), "k")
						if absent := state[:5] == "WRONG"; absent { // what is no entry is none
							require.ErrorIs(t, err, cache.ErrNotFound)
						} else {
							require.Error(t, err)
							require.NotErrorIs(t, err, cache.ErrNotFound)
						}
					}
					o := origin[string]{value: "v", takes: 100 * time.Millisecond}
					began := time.Now()
					herd(t, []*replica[string]{a}, 10, "k", "v", o.compute)
					assert.Less(t, time.Since(began), 1800*time.Millisecond, "nobody waits for a lease of 2 s")
					assert.LessOrEqual(t, o.runs.Load(), int64(2), "one, and one for who came late")
					count := 0
					for _, h := range hits {
						count += h.Count()
					}
					assert.Positive(t, count)

					proxy.Heal()
					require.Eventually(t, func() bool { return a.Delete(t.Context(), "k") == nil }, patience, tick)
					require.Eventually(t, func() bool { return len(leases(b.rdb)) == 0 }, patience, tick, "a lease is left")
					next := origin[string]{value: "w"}
					require.Eventually(t, func() bool {
						v, err := a.GetOrCompute(t.Context(), "k", next.compute)
						require.NoError(t, err)
						require.Equal(t, "w", v)
						got, err := b.Get(t.Context(), "k")
						return err == nil && got.Value == "w"
					}, patience, 10*tick, "it is stored again")
					require.NoError(t, b.Delete(t.Context(), "k"))
				})
			}
		})
	}
}

// A server forgets its scripts when it restarts, and when somebody tells it to. That is no trouble at all.
func TestAServerThatForgetsItsScriptsIsGivenThem(t *testing.T) {
	t.Parallel()
	s := serve(t)
	r, admin := join[string](t, s.Addr), redistest.Client(t, s)
	o := origin[string]{value: "v"}
	for range 5 {
		get(t, r, "k", o.compute, cache.Computed)
		get(t, r, "k", never[string](t), cache.Hit)
		require.NoError(t, admin.ScriptFlush(t.Context()).Err())
		require.NoError(t, r.Delete(t.Context(), "k"))
		require.NoError(t, admin.ScriptFlush(t.Context()).Err())
	}
	for _, step := range []string{"get", "begin", "set"} {
		assert.Zero(t, r.tally.failures(step))
	}
}
