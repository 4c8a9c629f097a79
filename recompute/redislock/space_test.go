package redislock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

const space = redislock.Space("app")

var roles = []string{"lease", "fence", "queue", "l", "v", "f"} // of leases and of entries

// braces are names that were put into one slot by some schemes and into several by others.
var braces = []string{
	"", "plain", "a b", "user:{42}:x", "{a}{b}", "tpl{{.ID}}", `json{"id":1}`, "a}b", "{}x", "x{}", "}x", "}", "{", "{}", "}{", "}{}", "}}",
	"{}}", "{{}}", "{a", "a}", "~}x", "{~}", "\x00", "}\xff", "a\r\nb", strings.Repeat("}", 100),
}

func TestAllKeysOfANameAreInOneClusterSlot(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t, "--cluster-enabled", "yes"))
	for _, name := range braces {
		slots := map[int64]bool{}
		for _, role := range roles {
			slot, err := c.ClusterKeySlot(t.Context(), space.Key(role, name)).Result()
			require.NoError(t, err)
			slots[slot] = true
		}
		assert.Len(t, slots, 1, "%q", name)
	}
}

func TestNamesAreSpreadOverSlots(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "app:l:{user 42}", space.Key("l", "user 42"))
	assert.NotEqual(t, tag(space.Key("l", "a")), tag(space.Key("l", "b")))
}

func TestAPrefixMayNotChooseTheSlot(t *testing.T) {
	t.Parallel()
	require.NoError(t, redislock.Space("app:v2").Validate())
	for _, prefix := range []redislock.Space{"{app}", "a{", "a}"} {
		require.ErrorContains(t, prefix.Validate(), "braces")
	}
}

// tag is the part of a key that Redis Cluster hashes: between the first brace and the next closing one, if there is anything.
func tag(key string) string {
	if _, rest, opens := strings.Cut(key, "{"); opens {
		if inside, _, closes := strings.Cut(rest, "}"); closes && inside != "" {
			return inside
		}
	}
	return key
}

func FuzzSpace(f *testing.F) {
	for i, name := range braces {
		f.Add(name, braces[len(braces)-1-i])
	}
	f.Fuzz(func(t *testing.T, name, other string) {
		keys := map[string]string{}
		for _, role := range roles {
			for _, n := range []string{name, other} {
				key := space.Key(role, n)
				require.Equal(t, tag(space.Key(roles[0], n)), tag(key), "%q has keys in several slots", n)
				require.True(t, strings.HasPrefix(key, "app:"+role), "%q", key)
				keys[key] = role + " of " + n
			}
		}
		want := 2 * len(roles)
		if name == other {
			want = len(roles)
		}
		require.Len(t, keys, want, "%q and %q share a key", name, other)
	})
}

// A job may have the name of something that is computed, and ask for it: it would wait for itself.
func TestAJobAndAComputationOfOneNameDoNotExcludeEachOther(t *testing.T) {
	t.Parallel()
	c := redistest.Client(t, redistest.Start(t))
	computes := redislock.On(redislock.NewSteps(c, redislock.StepOptions{Budget: 5 * time.Second}), "bellwether", "")
	job := acquire(t, fenced(t, c), "key", long)
	lease := acquire(t, computes, "key", long)
	_, err := computes.Acquire(t.Context(), "key", long)
	require.ErrorIs(t, err, recompute.ErrHeld)
	require.NoError(t, lease.Release(t.Context()))
	require.NoError(t, job.Extend(t.Context(), long))
	require.NoError(t, job.Release(t.Context()))
}
