package cache_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

// Cases 11 and 49: keys are bytes; what differs is different.
func TestKeysAreToldApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, cache.Options[string]{Policy: plain})
		f.takes = 0
		long := strings.Repeat("k", 1<<20)
		keys := []string{
			"a", "A", "a ", " a", "a\x00", "\x00", "\r\n", "é", "e\u0301", "\xff", "{}", "{a}", "}x", "a:b", "ab", "0", "nil",
			strings.Repeat("k", 511), strings.Repeat("k", 512), strings.Repeat("k", 513), long, long + "k", long[1:] + "l",
			cache.NameOf(long), cache.NameOf(cache.NameOf(long)), "sha256#", "sha256#" + strings.Repeat("0", 64),
		}
		want := map[string]string{}
		for _, key := range keys {
			r := f.ask(0, key)
			require.NoError(t, r.err)
			require.Equal(t, cache.Computed, r.Outcome, "%.20q", key)
			want[key] = r.Value
		}
		for _, key := range keys {
			values(t, want[key], []reply{f.ask(1, key)})
		}
		assert.EqualValues(t, len(keys), f.runs.Load())
		for _, key := range keys {
			require.NoError(t, f.replicas[0].Delete(t.Context(), key))
			f.stands(key, "")
			f.keys.Delete(key) // its lease is on its name
			f.free(cache.NameOf(key))
		}
	})
}

func TestALongKeyIsKeptByItsDigest(t *testing.T) {
	seen := map[string]string{}
	for _, key := range []string{
		"", "k", strings.Repeat("k", 512), strings.Repeat("k", 513), strings.Repeat("k", 1<<20),
		"sha256#", cache.NameOf(strings.Repeat("k", 513)), cache.NameOf(cache.NameOf(strings.Repeat("k", 513))),
	} {
		name := cache.NameOf(key)
		assert.LessOrEqual(t, len(name), 512)
		assert.NotContains(t, seen, name, "%.20q and %.20q", key, seen[name])
		seen[name] = key
		if len(key) <= 512 && !strings.HasPrefix(key, "sha256#") {
			assert.Equal(t, key, name)
		}
	}
	assert.Equal(t, "sha256#e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"[:7], cache.NameOf("sha256#")[:7])
}

// A key that nobody may be called by accident: the digest of another.
func TestADigestAsAKeyIsAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain})
		long := strings.Repeat("secret", 200)
		f.store(long, "secret")
		f.stands(cache.NameOf(long), "")
		f.stands(long, "secret")
	})
}

// Case 11: composite keys need a separator; the library does not print values into keys.
func ExampleCache_GetOrCompute_compositeKey() {
	key := func(parts ...string) string { return fmt.Sprintf("%q", parts) }
	fmt.Println(key("a", "bc"), key("ab", "c"))
	// Output: ["a" "bc"] ["ab" "c"]
}
