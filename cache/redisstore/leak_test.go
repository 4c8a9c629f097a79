package redisstore_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ours counts the goroutines that run code of this module, but for those of tests.
func ours() (n int) {
	stacks := make([]byte, 8<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		for line := range strings.Lines(stack) {
			if strings.HasPrefix(line, "github.com/bellwether-cache/bellwether/recompute") {
				n++
				break
			}
		}
	}
	return n
}

// Guarantee 17: after all kinds of use nothing is left but the client's own idle connections; and after Close no
// subscription either. Not parallel, so that the goroutines of no other test are about.
func TestAClosedCacheLeavesNothing(t *testing.T) {
	s := serve(t)
	admin := redistest.Client(t, s)
	before := ours()
	for range 5 {
		r := join(t, s.Addr, func(s *setup[string]) {
			s.cache.Policy.Fresh, s.cache.Policy.WhileRevalidate = 20*time.Millisecond, time.Minute
			s.cache.Lease = 300 * time.Millisecond
		})
		herd(t, []*replica[string]{r}, 50, "k", "v", (&origin[string]{value: "v", takes: 50 * time.Millisecond}).compute)
		time.Sleep(25 * time.Millisecond)
		get(t, r, "k", (&origin[string]{value: "v"}).compute, cache.Stale)
		for i := range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%5)*time.Millisecond)
			_, _ = r.Lookup(ctx, fmt.Sprint(i), func(ctx context.Context) (string, error) {
				switch i % 4 {
				case 0:
					panic("x")
				case 1:
					runtime.Goexit()
				case 2:
					<-ctx.Done()
				}
				return "", assert.AnError
			})
			cancel()
		}
		require.NoError(t, r.Delete(t.Context(), "k"))
		asked := ask(t, r, "hangs", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		time.Sleep(20 * time.Millisecond)
		require.NoError(t, r.Close())
		require.ErrorIs(t, (<-asked).err, cache.ErrClosed)
		assert.Empty(t, leases(admin))
		assert.EventuallyWithT(t, func(t *assert.CollectT) {
			assert.Zero(t, admin.PubSubNumSub(ctx, "t:events").Val()["t:events"])
			assert.LessOrEqual(t, ours(), before)
		}, patience, 10*time.Millisecond, "before: %d", before)
		require.NoError(t, r.rdb.Close())
	}
	assert.Eventually(t, func() bool {
		clients, err := admin.ClientList(ctx).Result()
		return err == nil && strings.Count(clients, "\n") == 1
	}, patience, 10*time.Millisecond, "connections are left")
}

// Case 108: a great many keys leave nothing behind but their entries. (Last known values have a bound of their own.)
func TestManyKeysLeaveNothingInTheProcess(t *testing.T) {
	s := serve(t)
	r := join(t, s.Addr, func(s *setup[int]) { s.cache.Near = -1 })
	const keys = 5000
	fill := func(from int) {
		done := make(chan error, 50)
		for w := range 50 {
			go func() {
				for i := from + w; i < from+keys; i += 50 {
					if _, err := r.GetOrCompute(t.Context(), fmt.Sprint(i), (&origin[int]{value: i}).compute); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range 50 {
			require.NoError(t, <-done)
		}
	}
	memory := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	fill(0)
	before := memory()
	fill(keys)
	grown := int64(memory()) - int64(before)
	t.Logf("%d more keys: %d bytes for each", keys, grown/keys)
	assert.Less(t, grown/keys, int64(50))
}
