package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

func schemaOf[V any](t *testing.T) string {
	t.Helper()
	c, err := cache.New(cache.NewMemory(), cache.Options[V]{Policy: plain})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	return c.SchemaOf()
}

// Case 79: what makes a difference to the reader makes another schema, and nothing else does.
func TestASchemaTellsWhatMattersForReading(t *testing.T) {
	type (
		v1      struct{ Name, Mail string }
		same    struct{ Name, Mail string }
		added   struct{ Name, Mail, Phone string }
		removed struct{ Name string }
		renamed struct{ Name, Email string }
		retyped struct {
			Name string
			Mail []string
		}
		tagged struct {
			Name string
			Mail string `msgpack:"mail"`
		}
		private struct {
			Name, Mail string
			cached     int
		}
		nested  struct{ Of v1 }
		nested2 struct{ Of renamed }
		list    struct{ Of []v1 }
		list2   struct{ Of []renamed }
		tree    struct {
			Left, Right *tree
			Value       int
		}
	)
	_ = private{cached: 1}.cached
	base := schemaOf[v1](t)
	assert.Len(t, base, 16)
	assert.Equal(t, base, schemaOf[same](t), "the name of the type is not stored")
	assert.Equal(t, base, schemaOf[private](t), "nor is what is not exported")
	all := map[string]string{
		"v1": base, "added": schemaOf[added](t), "removed": schemaOf[removed](t), "renamed": schemaOf[renamed](t),
		"retyped": schemaOf[retyped](t), "tagged": schemaOf[tagged](t), "nested": schemaOf[nested](t), "nested2": schemaOf[nested2](t),
		"list": schemaOf[list](t), "list2": schemaOf[list2](t), "tree": schemaOf[tree](t), "pointer": schemaOf[*v1](t),
		"map": schemaOf[map[string]v1](t), "map2": schemaOf[map[string]renamed](t), "map3": schemaOf[map[int]v1](t),
		"int": schemaOf[int](t), "int64": schemaOf[int64](t), "string": schemaOf[string](t), "bytes": schemaOf[[]byte](t),
		"strings": schemaOf[[]string](t), "any": schemaOf[any](t), "array2": schemaOf[[2]int](t), "array3": schemaOf[[3]int](t),
		"time": schemaOf[time.Time](t), "float": schemaOf[float64](t), "bool": schemaOf[bool](t),
	}
	seen := map[string]string{}
	for says, schema := range all {
		assert.NotContains(t, seen, schema, "%s is like %s", says, seen[schema])
		seen[schema] = says
	}
}

// plainText is another codec.
type plainText struct{}

func (plainText) Encode(v string) ([]byte, error)    { return []byte(v), nil }
func (plainText) Decode(data []byte) (string, error) { return string(data), nil }

func TestAnotherCodecIsAnotherSchema(t *testing.T) {
	c, err := cache.New(cache.NewMemory(), cache.Options[string]{Policy: plain, Codec: plainText{}})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	assert.NotEqual(t, schemaOf[string](t), c.SchemaOf())
}

type userV1 struct{ Name string }
type userV2 struct{ FullName string }

// Case 79: two versions of a program share a store, take turns, and leave each other's entries alone.
func TestTwoVersionsDoNotFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		before, err := cache.New(m, cache.Options[userV1]{Policy: plain})
		require.NoError(t, err)
		defer func() { require.NoError(t, before.Close()) }()
		after, err := cache.New(m, cache.Options[userV2]{Policy: plain})
		require.NoError(t, err)
		defer func() { require.NoError(t, after.Close()) }()
		runs := 0
		for range 100 {
			v1, err := before.GetOrCompute(t.Context(), "k", func(context.Context) (userV1, error) { runs++; return userV1{"Jane"}, nil })
			require.NoError(t, err)
			require.Equal(t, "Jane", v1.Name)
			v2, err := after.GetOrCompute(t.Context(), "k", func(context.Context) (userV2, error) { runs++; return userV2{"Jane Doe"}, nil })
			require.NoError(t, err)
			require.Equal(t, "Jane Doe", v2.FullName, "never a silent zero")
		}
		assert.Equal(t, 2, runs)

		// They are deleted together, and a Set of one ends the other's: it is of before.
		require.NoError(t, before.Delete(t.Context(), "k"))
		_, err = after.Get(t.Context(), "k")
		require.ErrorIs(t, err, cache.ErrNotFound)
		require.NoError(t, before.Set(t.Context(), "k", userV1{"old"}))
		require.NoError(t, after.Set(t.Context(), "k", userV2{"new"}))
		_, err = before.Get(t.Context(), "k")
		require.ErrorIs(t, err, cache.ErrNotFound)
	})
}

// Case 11: one key, two types, at once. They share the lease and nothing else.
func TestOneKeyOfTwoTypesIsTwoValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		numbers, err := cache.New(m, cache.Options[int]{Policy: plain})
		require.NoError(t, err)
		defer func() { require.NoError(t, numbers.Close()) }()
		texts, err := cache.New(m, cache.Options[string]{Policy: plain})
		require.NoError(t, err)
		defer func() { require.NoError(t, texts.Close()) }()
		for range 3 {
			done := make(chan struct{})
			go func() {
				defer close(done)
				n, err := numbers.GetOrCompute(t.Context(), "k", func(context.Context) (int, error) { time.Sleep(time.Second); return 7, nil })
				assert.NoError(t, err)
				assert.Equal(t, 7, n)
			}()
			s, err := texts.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { time.Sleep(time.Second); return "seven", nil })
			require.NoError(t, err)
			require.Equal(t, "seven", s)
			<-done
		}
		require.NoError(t, texts.Set(t.Context(), "k", "eight"))
		_, err = numbers.Get(t.Context(), "k")
		assert.ErrorIs(t, err, cache.ErrNotFound, "what is set takes the place of both")
	})
}

// What another version of the program publishes is nothing that this one knows.
func TestAnEntryOfAnotherSchemaIsNoLastKnownValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutage()
		f := fleetOver(t, o.Memory, cache.Options[string]{Policy: plain}, o)
		values(t, "v1", f.crowd(1, "k"))
		next, err := cache.New(o.Memory, cache.Options[int]{Policy: plain})
		require.NoError(t, err)
		defer next.Close()
		_, err = next.GetOrCompute(t.Context(), "k", func(context.Context) (int, error) { return 2, nil })
		require.NoError(t, err)
		o.begin(errNobody)
		values(t, "v2", f.crowd(1, "k"))
		assert.Zero(t, f.damaged.Load())
	})
}
