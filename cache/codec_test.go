package cache_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/bellwether-cache/bellwether/cache"
)

// everyWay asks for a value in all ways there are: as the one who computes it, as one who waits for it in this process
// and in another, and as one who finds it.
func everyWay[V any](t *testing.T, v V) map[string]V {
	t.Helper()
	got := map[string]V{}
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var caches []*cache.Cache[V]
		for range 2 {
			c, err := cache.New(m, cache.Options[V]{Policy: plain})
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			caches = append(caches, c)
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		ask := func(i int, says string) {
			all.Go(func() {
				r, err := caches[i].Lookup(t.Context(), "k", func(context.Context) (V, error) { time.Sleep(time.Second); return v, nil })
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				got[fmt.Sprint(r.Outcome, " ", says)] = r.Value
			})
			synctest.Wait()
		}
		ask(0, "here")
		ask(0, "here")
		ask(1, "there")
		all.Wait()
		ask(0, "here")
		ask(1, "there")
		all.Wait()
		r, err := caches[1].Get(t.Context(), "k")
		require.NoError(t, err)
		got["got"] = r.Value
	})
	require.Len(t, got, 6, "computed, collapsed twice, hit twice, got")
	return got
}

// Case 76: a time is the same instant, in the same zone, for everybody.
func TestATimeIsTheSameForEverybody(t *testing.T) {
	for _, at := range []time.Time{
		{}, time.Now(), time.Now().UTC(), time.Unix(0, 0), time.Unix(1_700_000_000, 1).In(time.FixedZone("X", 5*3600)),
		time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		for says, got := range everyWay(t, at) {
			require.True(t, at.Equal(got), "%s: %v is %v", says, at, got)
			if !at.IsZero() {
				require.Equal(t, time.Local, got.Location(), says)
			}
		}
	}
}

// Whatever a time's bytes look like: next to maps the decoder mistakes some for one.
func TestEveryTimeCanBeStored(t *testing.T) {
	type both struct {
		At   time.Time
		Meta map[string]any
	}
	var codec cache.Msgpack[both]
	check := func(seconds, nanos int64) {
		v := both{time.Unix(seconds, nanos), map[string]any{"at": time.Unix(seconds, nanos), "n": "x"}}
		data, err := codec.Encode(v)
		require.NoError(t, err)
		got, err := codec.Decode(data)
		require.NoError(t, err, "%d.%09d", seconds, nanos)
		require.True(t, v.At.Equal(got.At))
		require.True(t, v.At.Equal(got.Meta["at"].(time.Time)))
	}
	edges := []int64{0, 1, 1<<32 - 1, 1 << 32, 1<<34 - 1, 1 << 34, -1, 0x80000000, 0xde000000, 0xdf123456, 1 << 40}
	for _, seconds := range edges {
		for _, nanos := range []int64{0, 1, 0x80 << 22, 0x8f<<22 + 1, 0xde << 22, 0xdf << 22, 0xdf<<22 + 12345, 999_999_999} {
			check(seconds, nanos)
		}
	}
	for range 10_000 {
		check(rand.Int64N(1<<33), rand.Int64N(1_000_000_000))
	}
}

type opaque struct{ hidden int }

type fields struct {
	Any   any
	Inner any
	List  []any
	None  *int
}

// Case 77: the dynamic types are the same on a miss, a wait and a hit.
func TestEverybodyGetsTheSameTypes(t *testing.T) {
	for _, v := range []any{
		5, 300, -1, int64(1) << 40, uint8(7), uint64(math.MaxUint64), 1.5, float32(1.5), true, nil, "", "text", []byte{1}, []string{"a"}, []int{1, 300},
		map[string]int{"a": 1}, map[string]any{"a": []int{1}}, fields{Any: 5, Inner: fields{Any: "x"}, List: []any{1, "a", nil}},
		time.Second, time.Unix(1, 2), [2]int{1, 2}, &fields{Any: 1},
	} {
		var first any
		for says, got := range everyWay(t, v) {
			if first == nil {
				first = got
			}
			require.Equal(t, first, got, says)
			require.Equal(t, reflect.TypeOf(first), reflect.TypeOf(got), says)
		}
		for says, got := range everyWay(t, fields{Any: v}) {
			require.Equal(t, reflect.TypeOf(first), reflect.TypeOf(got.Any), says)
		}
	}
}

// Case 50, on this side of the store: an empty value is a value.
func TestAnEmptyValueIsAValue(t *testing.T) {
	checkEmpty(t, "")
	checkEmpty(t, 0)
	checkEmpty(t, false)
	checkEmpty(t, []string{})
	checkEmpty[[]string](t, nil)
	checkEmpty[*int](t, nil)
	checkEmpty[any](t, nil)
	checkEmpty[map[string]int](t, nil)
	checkEmpty(t, struct{}{})
	checkEmpty(t, time.Time{})
}

func checkEmpty[V any](t *testing.T, v V) {
	t.Helper()
	c, err := cache.New(cache.NewMemory(), cache.Options[V]{Policy: plain})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	runs := 0
	for range 100 {
		got, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (V, error) { runs++; return v, nil })
		require.NoError(t, err)
		require.Equal(t, v, got)
	}
	require.Equal(t, 1, runs, "%T", v)
}

// Case 78: what is not exported is not stored. Everybody loses it alike, so it is found at the first call.
func TestWhatIsNotExportedIsLostForEverybody(t *testing.T) {
	for says, got := range everyWay(t, opaque{hidden: 7}) {
		require.Zero(t, got, says)
	}
}

// Case 82: a value that can't be encoded is given to its callers, once for all.
func TestAValueThatCanNotBeEncodedIsGivenToItsCallers(t *testing.T) {
	type wire struct {
		Name string
		Ch   chan int
	}
	synctest.Test(t, func(t *testing.T) {
		faults := 0
		o := cache.Options[wire]{Policy: plain}
		o.Trace.Unencodable = func(error) { faults++ }
		m := cache.NewMemory()
		c, err := cache.New(m, o)
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		runs := 0
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				v, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (wire, error) {
					runs++
					time.Sleep(time.Second)
					return wire{"n", make(chan int)}, nil
				})
				assert.NoError(t, err)
				assert.Equal(t, "n", v.Name)
				assert.NotNil(t, v.Ch)
			})
		}
		all.Wait()
		assert.Equal(t, 1, runs)
		assert.Equal(t, 1, faults)
		_, err = m.Get(t.Context(), cache.Key{Name: "k", Schema: c.SchemaOf()})
		require.ErrorIs(t, err, cache.ErrNotFound)
		require.ErrorContains(t, c.Set(t.Context(), "k", wire{Ch: make(chan int)}), "encode")
	})
}

// A value that is stored must be readable, or Set lies.
func TestSetRefusesWhatCanNotBeReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: plain, Codec: moody{}})
		require.ErrorContains(t, f.replicas[0].Set(t.Context(), "k", "unreadable"), "can't be read back")
		require.ErrorContains(t, f.replicas[0].Set(t.Context(), "k", "unencodable"), "no way")
		f.stands("k", "")
	})
}

// fragile panics on what it did not write.
type fragile struct{ cache.Msgpack[string] }

func (c fragile) Decode(data []byte) (string, error) {
	v, err := c.Msgpack.Decode(data)
	if v == "poison" {
		panic("slice bounds out of range")
	}
	return v, err
}

// Guarantee 26 for codecs that are not ours.
func TestACodecThatPanicsOnForeignBytesMakesAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		store := &shim{Memory: m}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain, Codec: fragile{}}, store)
		f.store("k", "safe")
		poison, err := msgpack.Marshal("poison")
		require.NoError(t, err)
		spoiler(f, store)(func(e cache.Entry) cache.Entry {
			e.Data = cache.Forge(append(append([]byte(nil), e.Data[:cache.HeaderSize]...), poison...))
			return e
		})
		_, err = f.replicas[0].Get(t.Context(), "k")
		require.ErrorIs(t, err, cache.ErrNotFound)
		values(t, "v1", []reply{f.ask(0, "k")})
		values(t, "v1", []reply{f.ask(0, "k")})
		assert.Positive(t, f.damaged.Load())
	})
}

// Case 83: an encoding that differs each time is no trouble.
func TestNothingDependsOnEqualBytes(t *testing.T) {
	big := map[string]int{}
	for i := range 50 {
		big[fmt.Sprint(i)] = i
	}
	for says, got := range everyWay(t, big) {
		require.Equal(t, big, got, says)
	}
	s := newShelf[map[string]int](t)
	first := s.sealed("k", big)
	for string(first) == string(s.sealed("k", big)) {
		continue // the encodings do differ
	}
	r, err := s.cache.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, big, r.Value)
}
