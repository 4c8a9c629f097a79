package cache_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

type mutable struct {
	Tags []string
	Meta map[string]string
	Body []byte
}

func fresh() mutable {
	return mutable{Tags: []string{"a", "b"}, Meta: map[string]string{"k": "v"}, Body: []byte("body")}
}

// scribble changes all that can be changed.
func (m mutable) scribble(i int) {
	m.Tags[0] = fmt.Sprint("scribble ", i)
	_ = append(m.Tags[:1], "scribble")
	m.Meta[fmt.Sprint(i)] = "scribble"
	copy(m.Body, "scribble")
}

// Case 8: callers may do with their values what they like. Run with -race.
func TestNoCallerSeesAnothersChanges(t *testing.T) {
	for _, windowed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := cache.Options[mutable]{Policy: plain}
			if windowed {
				o.Policy = windows
			}
			m := cache.NewMemory()
			c, err := cache.New(m, o)
			require.NoError(t, err)
			defer func() { require.NoError(t, c.Close()) }()
			kept := fresh() // the computation keeps what it returned, and changes it
			round := func() {
				var all sync.WaitGroup
				for i := range 10 {
					all.Go(func() {
						v, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (mutable, error) {
							time.Sleep(time.Second)
							kept = fresh()
							return kept, nil
						})
						assert.NoError(t, err)
						assert.Equal(t, fresh(), v)
						v.scribble(i)
					})
				}
				all.Wait()
				kept.scribble(99)
			}
			round() // merged
			round() // hits
			got, err := c.Get(t.Context(), "k")
			require.NoError(t, err)
			got.Value.scribble(17)
			round()
			time.Sleep(o.Policy.Retain() - time.Second) // stale, in the place of an error for all but one
			round()
			synctest.Wait()
			stored, err := c.Get(t.Context(), "k")
			require.NoError(t, err)
			require.Equal(t, fresh(), stored.Value, "the store has what the computation returned")
		})
	}
}

// Nor does the computation that sees the value which it is to replace (and perhaps publishes it again). Run with -race.
func TestNoComputationSeesTheChangesOfWhoWasServedTheFormerValue(t *testing.T) {
	for says, prompt := range map[string]bool{"served on its own goroutine": true, "served by a shared read": false} {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &shim{Memory: cache.NewMemory(), prompt: prompt}
				c, err := cache.New(store, cache.Options[mutable]{Policy: windows})
				require.NoError(t, err)
				defer c.Close()
				require.NoError(t, c.Set(t.Context(), "k", fresh()))
				time.Sleep(windows.Fresh)
				v, err := c.GetOrCompute(t.Context(), "k", func(ctx context.Context) (mutable, error) {
					time.Sleep(time.Second)
					former, ok := cache.Former[mutable](ctx)
					assert.True(t, ok)
					return former.Value, nil
				})
				require.NoError(t, err)
				v.scribble(1)
				time.Sleep(2 * time.Second)
				r, err := c.Get(t.Context(), "k")
				require.NoError(t, err)
				assert.Less(t, r.Age, windows.Fresh)
				assert.Equal(t, fresh(), r.Value)
			})
		})
	}
}

// A value that Set was given is its caller's again.
func TestAValueMayBeChangedAfterSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := cache.New(cache.NewMemory(), cache.Options[mutable]{Policy: plain})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		v := fresh()
		require.NoError(t, c.Set(t.Context(), "k", v))
		v.scribble(1)
		got, err := c.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, fresh(), got.Value)
	})
}

// counting is a codec that counts what it decodes.
type counting[V any] struct {
	cache.Msgpack[V]
	decoded *atomic.Int64
}

func (c counting[V]) Decode(data []byte) (V, error) {
	c.decoded.Add(1)
	return c.Msgpack.Decode(data)
}

// What can't be changed through a copy is shared, and so is what Clone copies.
func TestOnlyWhatCanBeChangedIsDecodedForEachCaller(t *testing.T) {
	type flat struct {
		Name string
		At   time.Time
		N    [3]int
	}
	assert.Less(t, decodings(t, "text", nil), int64(150))
	assert.Less(t, decodings(t, flat{Name: "n"}, nil), int64(150))
	assert.Greater(t, decodings(t, fresh(), nil), int64(150))
	assert.Greater(t, decodings(t, &flat{}, nil), int64(150))
	assert.Greater(t, decodings[any](t, 1, nil), int64(150))
	assert.Less(t, decodings(t, fresh(), func(v mutable) mutable { return v }), int64(150))
}

// decodings returns how often 100 merged callers and 100 hits at once decode.
func decodings[V any](t *testing.T, v V, clone func(V) V) (n int64) {
	synctest.Test(t, func(t *testing.T) {
		var decoded atomic.Int64
		o := cache.Options[V]{Policy: plain, Codec: counting[V]{decoded: &decoded}, Clone: clone}
		c, err := cache.New(cache.NewMemory(), o)
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		for range 2 {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					_, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (V, error) { time.Sleep(time.Second); return v, nil })
					assert.NoError(t, err)
				})
			}
			all.Wait()
		}
		n = decoded.Load()
	})
	return n
}

func TestCloneIsAskedForEachCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clones atomic.Int64
		o := cache.Options[string]{Policy: windows, Clone: func(v string) string { clones.Add(1); return v + "'" }}
		f := newFleet(t, 1, o)
		values(t, "v1'", f.crowd(10, "k"))
		values(t, "v1'", f.crowd(10, "k"))
		assert.EqualValues(t, 20, clones.Load())
		time.Sleep(windows.Fresh)
		values(t, "v1'", []reply{f.ask(0, "k")})
		r, err := f.replicas[0].Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Equal(t, "v1'", r.Value)
	})
}
