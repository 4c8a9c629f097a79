package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Case 50: a value may be empty, and existence is not a second question.
func TestAnEmptyValueIsAValue(t *testing.T) {
	t.Parallel()
	s := serve(t)
	t.Run("string", func(t *testing.T) { empty(t, s.Addr, "") })
	t.Run("number", func(t *testing.T) { empty(t, s.Addr, 0) })
	t.Run("bool", func(t *testing.T) { empty(t, s.Addr, false) })
	t.Run("nil slice", func(t *testing.T) { empty[[]string](t, s.Addr, nil) })
	t.Run("empty slice", func(t *testing.T) { empty(t, s.Addr, []string{}) })
	t.Run("no bytes", func(t *testing.T) { empty(t, s.Addr, []byte{}) })
	t.Run("nil map", func(t *testing.T) { empty[map[string]int](t, s.Addr, nil) })
	t.Run("nil pointer", func(t *testing.T) { empty[*int](t, s.Addr, nil) })
	t.Run("nil interface", func(t *testing.T) { empty[any](t, s.Addr, nil) })
	t.Run("empty struct", func(t *testing.T) { empty(t, s.Addr, struct{}{}) })
}

func empty[V any](t *testing.T, addr string, v V) {
	a, b := join[V](t, addr), join[V](t, addr)
	o := origin[V]{value: v}
	assert.Equal(t, v, get(t, a, t.Name(), o.compute, cache.Computed))
	for range 50 {
		assert.Equal(t, v, get(t, a, t.Name(), o.compute, cache.Hit))
		assert.Equal(t, v, get(t, b, t.Name(), o.compute, cache.Hit))
	}
}

// Case 11: one key asked for with two types is two entries; deleting the key deletes both.
func TestTheSameKeyOfTwoTypesIsTwoEntries(t *testing.T) {
	t.Parallel()
	s := serve(t)
	words, numbers := join[string](t, s.Addr), join[int](t, s.Addr)
	word, number := origin[string]{value: "v", takes: 50 * time.Millisecond}, origin[int]{value: 1, takes: 50 * time.Millisecond}
	asked := ask(t, words, "k", word.compute)
	assert.Equal(t, 1, get(t, numbers, "k", number.compute, cache.Computed))
	a := <-asked
	require.NoError(t, a.err)
	assert.Equal(t, "v", a.Value)
	get(t, words, "k", never[string](t), cache.Hit)
	get(t, numbers, "k", never[int](t), cache.Hit)

	require.NoError(t, words.Delete(t.Context(), "k"))
	get(t, numbers, "k", number.compute, cache.Computed)
	get(t, words, "k", word.compute, cache.Computed)

	// A Set leaves no entry of before in any type.
	require.NoError(t, words.Set(t.Context(), "k", "w"))
	get(t, numbers, "k", number.compute, cache.Computed)
	assert.Equal(t, "w", get(t, words, "k", never[string](t), cache.Hit))
}

// Two versions of one program, as a rolling deploy has them.
type (
	page1 struct{ Title, Body string }
	page2 struct {
		Heading string // renamed: msgpack alone would leave it empty without an error
		Body    string
	}
)

// Case 79: they share a Redis and do not fight over it.
func TestTwoVersionsOfAStructAlternateOnOneRedis(t *testing.T) {
	t.Parallel()
	s := serve(t)
	short := func(s *setup[page1]) { s.cache.Policy.Fresh = 400 * time.Millisecond }
	v1 := join(t, s.Addr, short)
	v2 := join[page2](t, s.Addr)
	old := origin[page1]{value: page1{"t", "b"}}
	young := origin[page2]{value: page2{"h", "b"}}
	for range 100 {
		a, err := v1.GetOrCompute(t.Context(), "k", old.compute)
		require.NoError(t, err)
		assert.Equal(t, old.value, a)
		b, err := v2.GetOrCompute(t.Context(), "k", young.compute)
		require.NoError(t, err)
		assert.Equal(t, young.value, b)
	}
	assert.LessOrEqual(t, old.runs.Load(), int64(2)) // a slow machine may see the end of the first lifetime
	assert.EqualValues(t, 1, young.runs.Load())

	time.Sleep(410 * time.Millisecond)
	get(t, v1, "k", old.compute, cache.Computed)
	get(t, v2, "k", never[page2](t), cache.Hit)

	require.NoError(t, v1.Delete(t.Context(), "k"))
	get(t, v2, "k", young.compute, cache.Computed)
	get(t, v1, "k", old.compute, cache.Computed)
}

// Case 48: a value that may not be stored is still a value, for all who wait for it.
func TestAValueOverMaxBytesIsServedAndNotStored(t *testing.T) {
	t.Parallel()
	s := serve(t)
	replicas := fleet(t, s.Addr, 2, func(s *setup[string]) { s.store.MaxBytes = 1000 })
	o := origin[string]{value: strings.Repeat("x", 1000), takes: 100 * time.Millisecond}
	herd(t, replicas[:1], 50, "k", o.value, o.compute)
	assert.EqualValues(t, 1, o.runs.Load())
	assert.Equal(t, 1, replicas[0].tally.failures("set"))
	require.ErrorIs(t, replicas[0].tally.errors[len(replicas[0].tally.errors)-1], cache.ErrTooBig)
	assert.Empty(t, leases(replicas[0].rdb))
	get(t, replicas[1], "k", o.compute, cache.Computed)
	require.ErrorIs(t, replicas[1].Set(t.Context(), "k", o.value), cache.ErrTooBig)

	fits := origin[string]{value: strings.Repeat("x", 900)}
	get(t, replicas[0], "k", fits.compute, cache.Computed)
	assert.Equal(t, fits.value, get(t, replicas[1], "k", never[string](t), cache.Hit))
}

// Case 48: the server's own limit. It ends the connection of who sends more.
func TestAValueOverTheServersLimitIsServedAndNotStored(t *testing.T) {
	t.Parallel()
	s := serve(t, "--proto-max-bulk-len", "1mb")
	r := join[string](t, s.Addr)
	o := origin[string]{value: strings.Repeat("x", 2<<20), takes: 100 * time.Millisecond}
	began := time.Now()
	herd(t, []*replica[string]{r}, 50, "k", o.value, o.compute)
	t.Logf("served after %v", time.Since(began).Round(time.Millisecond))
	assert.EqualValues(t, 1, o.runs.Load())
	assert.Equal(t, 1, r.tally.failures("set"))
	assert.Empty(t, leases(r.rdb))
	assert.Equal(t, "small", get(t, r, "other", (&origin[string]{value: "small"}).compute, cache.Computed))
}

// Case 82: a value that can't be encoded.
func TestAValueThatCannotBeEncodedIsServedAndNotStored(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := join[func() int](t, s.Addr), join[func() int](t, s.Addr)
	o := origin[func() int]{value: func() int { return 7 }, takes: 50 * time.Millisecond}
	asked := make([]<-chan answer[func() int], 50)
	for i := range asked {
		asked[i] = ask(t, a, "k", o.compute)
	}
	for _, c := range asked {
		got := <-c
		require.NoError(t, got.err)
		assert.Equal(t, 7, got.Value())
	}
	assert.EqualValues(t, 1, o.runs.Load())
	assert.EqualValues(t, 1, a.tally.unencodable.Load())
	assert.Empty(t, leases(a.rdb))
	got := <-ask(t, b, "k", o.compute)
	require.NoError(t, got.err)
	assert.Less(t, got.took, time.Second, "nothing to wait for")
}

// Cases 66 and 67: "not found" is remembered for a time of its own, a failure is not, and neither replaces a value.
func TestNotFoundIsRememberedAndAFailureIsNot(t *testing.T) {
	t.Parallel()
	s := serve(t)
	replicas := fleet(t, s.Addr, 2, func(s *setup[string]) { s.cache.Policy.Negative = 300 * time.Millisecond })
	runs := 0
	absent := func(context.Context) (string, error) { runs++; return "", errors.Join(cache.ErrNotFound) }
	for range 20 {
		for _, r := range replicas {
			_, err := r.Lookup(t.Context(), "k", absent)
			require.ErrorIs(t, err, cache.ErrNotFound)
		}
	}
	assert.LessOrEqual(t, runs, 2)
	ttl := redistest.Keys(t, replicas[0].rdb)[redisKey("v", "k")]
	assert.LessOrEqual(t, ttl, 300*time.Millisecond)
	time.Sleep(310 * time.Millisecond)
	assert.Equal(t, "v", get(t, replicas[0], "k", (&origin[string]{value: "v"}).compute, cache.Computed))
	assert.Equal(t, "v", get(t, replicas[1], "k", never[string](t), cache.Hit))

	_, err := replicas[0].Lookup(t.Context(), "broken", func(context.Context) (string, error) { return "", assert.AnError })
	require.ErrorIs(t, err, assert.AnError)
	assert.NotContains(t, redistest.Keys(t, replicas[0].rdb), redisKey("v", "broken"))
	assert.Equal(t, "v", get(t, replicas[1], "broken", (&origin[string]{value: "v"}).compute, cache.Computed))
}
