package cache_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

// page is a value with something of everything that can be half filled.
type page struct {
	Title string
	Tags  []string
	Meta  map[string]any
	Body  []byte
	At    time.Time
	Next  *page
}

var aPage = page{
	Title: "net/http", Tags: []string{"go", "std"}, Meta: map[string]any{"stars": "many", "size": 3.5},
	Body: []byte{0, 1, 2, 255}, At: time.Unix(1_700_000_000, 123_456_789), Next: &page{Title: "next", Tags: []string{}},
}

// shelf is a store whose bytes a test sets, with a cache over it.
type shelf[V any] struct {
	t       *testing.T
	memory  *cache.Memory
	cache   *cache.Cache[V]
	damaged int
}

func newShelf[V any](t *testing.T) *shelf[V] {
	s := &shelf[V]{t: t, memory: cache.NewMemory()}
	o := cache.Options[V]{Policy: windows}
	o.Trace.Damaged = func(error) { s.damaged++ }
	c, err := cache.New(s.memory, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	s.cache = c
	return s
}

func (s *shelf[V]) key(name string) cache.Key {
	return cache.Key{Name: name, Schema: s.cache.SchemaOf()}
}

// put puts bytes where the entry of a key is.
func (s *shelf[V]) put(name string, data []byte) {
	s.t.Helper()
	fence, _, err := s.memory.Begin(s.t.Context(), s.key(name), 0, time.Minute)
	require.NoError(s.t, err)
	require.NoError(s.t, s.memory.Set(s.t.Context(), s.key(name), cache.Write{Data: data, Fence: fence, TTL: time.Hour}))
}

// bytes returns the bytes of an entry.
func (s *shelf[V]) bytes(name string) []byte {
	s.t.Helper()
	e, err := s.memory.Get(s.t.Context(), s.key(name))
	require.NoError(s.t, err)
	return slices.Clone(e.Data)
}

// sealed returns the bytes of an entry with that value.
func (s *shelf[V]) sealed(name string, v V) []byte {
	s.t.Helper()
	require.NoError(s.t, s.cache.Set(s.t.Context(), name, v))
	return s.bytes(name)
}

// damages are what may happen to the bytes of an entry.
func damages(whole []byte) map[string][]byte {
	all := map[string][]byte{
		"nothing":      {},
		"JSON":         []byte(`{"Title":"net/http"}`),
		"msgpack":      whole[cache.HeaderSize:],
		"twice":        append(slices.Clone(whole), whole...),
		"no header":    bytes.Repeat([]byte{0xff}, len(whole)),
		"zeros":        make([]byte, len(whole)),
		"a zero after": append(slices.Clone(whole), 0),
		"text after":   append(slices.Clone(whole), "\r\n"...),
		"text before":  append([]byte("x"), whole...),
	}
	for i := range whole {
		all[fmt.Sprint("prefix of ", i)] = whole[:i]
		for bit := range 8 {
			flipped := slices.Clone(whole)
			flipped[i] ^= 1 << bit
			all[fmt.Sprint("bit ", 8*i+bit)] = flipped
		}
	}
	return all
}

// Guarantee 26; case 80: whatever the bytes are, it is a miss, counted, and overwritten once.
func TestADamagedEntryIsAMissThatIsOverwrittenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf[string](t)
		whole := s.sealed("k", "the value")
		runs := 0
		for says, data := range damages(whole) {
			s.put("k", data)
			before := s.damaged
			_, err := s.cache.Get(t.Context(), "k")
			require.ErrorIs(t, err, cache.ErrNotFound, says)
			require.Equal(t, before+1, s.damaged, says)
			for range 3 {
				v, err := s.cache.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { runs++; return "new", nil })
				require.NoError(t, err, says)
				require.Equal(t, "new", v, says)
			}
			require.NotEqual(t, data, s.bytes("k"), says)
		}
		assert.Equal(t, len(damages(whole)), runs)
	})
}

// The same where a value can be half filled.
func TestADamagedEntryNeverYieldsAHalfFilledValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf[page](t)
		whole := s.sealed("k", aPage)
		for i := range whole {
			s.put("k", whole[:i])
			r, err := s.cache.Get(t.Context(), "k")
			require.ErrorIs(t, err, cache.ErrNotFound)
			require.Zero(t, r)
		}
		// Truncated or followed by more, and yet of the right length and checksum.
		for i := cache.HeaderSize; i < len(whole); i++ {
			s.put("k", cache.Forge(slices.Clone(whole[:i])))
			r, err := s.cache.Get(t.Context(), "k")
			require.ErrorIs(t, err, cache.ErrNotFound)
			require.Zero(t, r)
		}
		for _, more := range []string{"\x00", "\xc0", "junk"} {
			s.put("k", cache.Forge(append(slices.Clone(whole), more...)))
			_, err := s.cache.Get(t.Context(), "k")
			require.ErrorIs(t, err, cache.ErrNotFound)
		}
		s.put("k", whole)
		r, err := s.cache.Get(t.Context(), "k")
		require.NoError(t, err)
		require.True(t, aPage.At.Equal(r.Value.At))
		r.Value.At = aPage.At
		require.Equal(t, aPage, r.Value)
	})
}

// Cases 80 and 84: the checksum is right, and the entry is still none of ours.
func TestAnEntryThatIsNotOursIsAMiss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf[string](t)
		number := newShelf[int](t)
		whole := s.sealed("k", "the value")
		forge := func(change func(b []byte)) []byte {
			b := slices.Clone(whole)
			change(b)
			return cache.Forge(b)
		}
		at := func(i int, v uint64) func([]byte) {
			return func(b []byte) { binary.BigEndian.PutUint64(b[i:], v) }
		}
		foreign := map[string][]byte{
			"of another key":             s.sealed("l", "the value"),
			"of another schema":          number.sealed("k", 1),
			"of a type that looks alike": forge(func(b []byte) { b[21]++ }),
			"of an older version":        forge(func(b []byte) { b[3] = 1 }),
			"of a newer version":         forge(func(b []byte) { b[3] = 3 }),
			"with another magic":         forge(func(b []byte) { b[0] = 'b' }),
			"with an unknown flag":       forge(func(b []byte) { b[4] = 2 }),
			"with unknown flags":         forge(func(b []byte) { b[4] = 0xff }),
			"of no use":                  forge(func(b []byte) { clear(b[37:69]) }),
			"of negative freshness":      forge(at(37, math.MaxUint64)),
			"of a negative window":       forge(at(45, 1<<63)),
			"of a negative IfError":      forge(at(53, 1<<63)),
			"of a negative Keep":         forge(at(61, 1<<63)),
			"of negative cost":           forge(at(69, math.MaxUint64)),
			"of a greater length":        cache.ForgeSum(append(slices.Clone(whole), 0)),
			"of a smaller length":        cache.ForgeSum(slices.Clone(whole[:len(whole)-1])),
			"of a huge length":           cache.ForgeSum(forgeLength(whole, math.MaxUint32)),
			"with another value":         append(forge(func([]byte) {})[:cache.HeaderSize], "\xa1x"...),
			"of another type of data":    forge(func(b []byte) { b[cache.HeaderSize] = 0xc1 }),
		}
		for says, data := range foreign {
			s.put("k", data)
			before := s.damaged
			_, err := s.cache.Get(t.Context(), "k")
			require.ErrorIs(t, err, cache.ErrNotFound, says)
			require.Equal(t, before+1, s.damaged, says)
		}
		s.put("k", forge(func([]byte) {}))
		_, err := s.cache.Get(t.Context(), "k")
		require.NoError(t, err, "the forger's work is good")
	})
}

func forgeLength(whole []byte, n uint32) []byte {
	b := slices.Clone(whole)
	binary.BigEndian.PutUint32(b[77:], n)
	return b
}

// An entry may say that it is useful for longer than it is kept; no time in it makes anything overflow.
func TestExtremeTimesInAnEntryAreNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf[string](t)
		b := s.sealed("k", "v")
		for _, i := range []int{37, 45, 53, 61, 69} {
			binary.BigEndian.PutUint64(b[i:], math.MaxInt64)
		}
		s.put("k", cache.Forge(b))
		time.Sleep(59 * time.Minute)
		r, err := s.cache.Lookup(t.Context(), "k", nilCompute)
		require.NoError(t, err)
		require.Equal(t, cache.Hit, r.Outcome)
		require.Equal(t, 59*time.Minute, r.Age)
	})
}

func nilCompute(context.Context) (string, error) { panic("not to be called") }

// A value of many levels must not take the process's stack.
func TestAValueNestedTooDeepIsRefused(t *testing.T) {
	var codec cache.Msgpack[any]
	deep := func(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n), 0xc0) }
	_, err := codec.Decode(deep(9_000))
	require.NoError(t, err)
	for _, level := range [][]byte{{0x91}, {0x81, 0xc0}, {0xdc, 0, 1}, {0xdd, 0, 0, 0, 1}, {0xde, 0, 1, 0xc0}} {
		_, err = codec.Decode(append(bytes.Repeat(level, 5_000_000), 0xc0))
		require.ErrorContains(t, err, "nested too deep")
	}
}
