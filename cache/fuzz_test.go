package cache_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"

	"github.com/bellwether-cache/bellwether/cache"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// allowed is how much may be allocated for n bytes: an array of empty arrays becomes a slice of pages, 150 bytes each,
// and slices grow by doubling.
func allowed(n int) uint64 { return 1<<17 + 1000*uint64(n) }

// seeds are payloads of all kinds.
func seeds(f *testing.F) (all [][]byte) {
	for _, v := range []any{
		nil, true, 1, -1, math.MaxInt64, uint64(math.MaxUint64), 1.5, float32(2), "", "text", []byte("bytes"), []string{"a", "b"},
		map[string]int{"a": 1}, map[string]any{"a": []any{1, "b", nil, map[string]any{}}}, time.Unix(1, 2), aPage, []page{aPage, {}},
	} {
		data, err := msgpack.Marshal(v)
		require.NoError(f, err)
		all = append(all, data)
	}
	for _, claim := range []string{
		"\xdd\xff\xff\xff\xff", "\xdf\xff\xff\xff\xff", "\xc6\xff\xff\xff\xff", "\xdb\xff\xff\xff\xff", "\xc9\xff\xff\xff\xff\x01",
		"\xdd\x7f\xff\xff\xff", "\x91\xdd\x00\xff\xff\xff", "\xc1", "\x81\xa0", "\xd6\xff\x00\x00\x00\x00", "\xd7\xff", "\xc7\x0c\xff",
		"\xd4\x80\x01", "\xc7\x00\x80", "\x86\xa4Next\x80", "\x86\xa4Next\x90", "\x81\xa4Next\x81\xa4Next\x81\xa4Next\xc0",
		"\xd70\xdf0000000", "\xd70\xde0000000", "\xd7\xff\xde0000000", "\xd6\xff\xdf000", "\xc7\x0c\xff\xdf00000000000",
		"\x81\xa4Meta\xd7\xff\xdf0000000", "\x81\x91\xc0\xc0", "\x81\x80\xc0", "\x81\xc0\xc0",
	} {
		all = append(all, []byte(claim))
	}
	return all
}

// Guarantee 26: no bytes make the codec panic, allocate what they don't carry, or return a value along with an error.
func FuzzMsgpack(f *testing.F) {
	for _, data := range seeds(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decode[page](t, data)
		decode[any](t, data)
		decode[map[string]any](t, data)
		decode[[]page](t, data)
		decode[string](t, data)
		decode[int8](t, data)
		decode[time.Time](t, data)
		decode[*page](t, data)
		decode[[3]int](t, data)
		decode[map[any]any](t, data)
		decode[map[time.Time][]map[string]string](t, data)
	})
}

func decode[V any](t *testing.T, data []byte) {
	t.Helper()
	var v, zero V
	var err error
	n := allocated(func() { v, err = cache.Msgpack[V]{}.Decode(data) })
	require.LessOrEqual(t, n, allowed(len(data)), "for %d bytes", len(data))
	if err != nil {
		require.Equal(t, zero, v, "half filled")
		return
	}
	again, err := cache.Msgpack[V]{}.Encode(v)
	require.NoError(t, err)
	_, err = cache.Msgpack[V]{}.Decode(again)
	require.NoError(t, err, "what was decoded can be encoded and decoded again")
}

// Guarantee 26: no bytes at a key's place make the cache panic or serve what it did not store. forge makes them pass
// the length and the checksum.
func FuzzEnvelope(f *testing.F) {
	m := cache.NewMemory()
	c, err := cache.New(m, cache.Options[page]{Policy: windows})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, c.Close()) })
	key := cache.Key{Name: "k", Schema: c.SchemaOf()}
	require.NoError(f, c.Set(context.Background(), "k", aPage))
	whole, err := m.Get(context.Background(), key)
	require.NoError(f, err)
	header := whole.Data[:cache.HeaderSize]
	f.Add(whole.Data, false)
	f.Add(whole.Data, true)
	f.Add(header, true)
	f.Add([]byte("BWE\x02"), false)
	f.Add([]byte(`{"Title":"net/http"}`), false)
	for _, data := range seeds(f) {
		f.Add(append(append([]byte(nil), header...), data...), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, forge bool) {
		data = append([]byte(nil), data...)
		if forge {
			data = cache.Forge(data)
		}
		fence, _, err := m.Begin(t.Context(), key, 0, time.Second)
		require.NoError(t, err)
		require.NoError(t, m.Set(t.Context(), key, cache.Write{Data: data, Fence: fence, TTL: time.Minute}))
		var r cache.Result[page]
		n := allocated(func() { r, err = c.Get(t.Context(), "k") })
		require.LessOrEqual(t, n, allowed(len(data)))
		if err != nil {
			require.ErrorIs(t, err, cache.ErrNotFound)
			require.Zero(t, r)
			return
		}
		want, err := cache.Msgpack[page]{}.Decode(data[cache.HeaderSize:])
		require.NoError(t, err, "served although it can't be read")
		require.Equal(t, want, r.Value)
		require.Equal(t, string(header[:4]), string(data[:4]))
		require.Equal(t, header[5:37], data[5:37], "of this key and schema")
	})
}
