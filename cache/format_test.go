package cache_test

import (
	"encoding/hex"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

// What an earlier version has stored is read by a later one. Whoever changes this changes the version in the magic, and
// says so in the changelog: two versions of the format on one key overwrite each other.
func TestTheStoredFormatIsWhatItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const schema = "bcc4028a7810ec67"
		const entry = "42574502008254c329a92850f6d539dd376f4816ee626363343032386137383130656336370000000df84758000000000df8" +
			"4758000000034630b8a00000000000000000000000000000000000000000103b4891fe82a44e616d65a44a616e65a36167652a"
		type user struct {
			Name string
			Age  int `msgpack:"age"`
		}
		m := cache.NewMemory()
		c, err := cache.New(m, cache.Options[user]{Policy: windows})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		assert.Equal(t, schema, c.SchemaOf())
		require.NoError(t, c.Set(t.Context(), "k", user{"Jane", 42}))
		e, err := m.Get(t.Context(), cache.Key{Name: "k", Schema: c.SchemaOf()})
		require.NoError(t, err)
		assert.Equal(t, entry, hex.EncodeToString(e.Data))
	})
}
