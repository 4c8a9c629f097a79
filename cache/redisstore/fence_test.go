package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Cases 70 and 71: what was deleted while it was computed stays deleted, whoever deletes it. Those who asked before the
// computation began get its result, or a later one; never nothing, and never the old one after the deletion.
func TestADeletedValueDoesNotComeBack(t *testing.T) {
	t.Parallel()
	replicas := fleet[string](t, serve(t).Addr, 3)
	for who, deleter := range []*replica[string]{replicas[0], replicas[1]} {
		t.Run([]string{"by its own replica", "by another"}[who], func(t *testing.T) {
			key := t.Name()
			v1 := gate("v1")
			leader := ask(t, replicas[0], key, v1.compute)
			<-v1.running
			waiters := []<-chan answer[string]{ask(t, replicas[0], key, v1.compute), ask(t, replicas[2], key, v1.compute)}
			time.Sleep(50 * time.Millisecond) // they wait
			require.NoError(t, deleter.Delete(t.Context(), key))

			v2 := origin[string]{value: "v2"}
			after := []<-chan answer[string]{ask(t, replicas[0], key, v2.compute), ask(t, replicas[1], key, v2.compute), ask(t, replicas[2], key, v2.compute)}
			time.Sleep(50 * time.Millisecond)
			close(v1.open)
			assert.Equal(t, "v1", (<-leader).Value)
			for _, c := range waiters {
				got := <-c
				require.NoError(t, got.err)
				assert.NotEmpty(t, got.Value)
			}
			for i, c := range after {
				got := <-c
				require.NoError(t, got.err)
				if v1.runs.Load() == 1 {
					assert.Equal(t, "v2", got.Value, "replica %d", i)
				}
			}
			assert.EqualValues(t, 1, replicas[0].tally.overtaken.Swap(0))
			assert.LessOrEqual(t, v1.runs.Load()+v2.runs.Load(), int64(2))
		})
	}
}

// Case 70: so does what is renewed behind a stale answer.
func TestARenewalThatBeganBeforeADeletionIsRefused(t *testing.T) {
	t.Parallel()
	replicas := fleet(t, serve(t).Addr, 2, func(s *setup[string]) {
		s.cache.Policy.Fresh, s.cache.Policy.WhileRevalidate = 200*time.Millisecond, time.Minute
	})
	a, b := replicas[0], replicas[1]
	get(t, a, "k", (&origin[string]{value: "v0"}).compute, cache.Computed)
	time.Sleep(210 * time.Millisecond)
	v1 := gate("v1")
	assert.Equal(t, "v0", get(t, a, "k", v1.compute, cache.Stale))
	<-v1.running
	require.NoError(t, b.Delete(t.Context(), "k"))
	_, err := a.Get(t.Context(), "k")
	require.ErrorIs(t, err, cache.ErrNotFound)
	close(v1.open)
	assert.Eventually(t, func() bool { return a.tally.overtaken.Load() == 1 }, patience, tick)
	_, err = a.Get(t.Context(), "k")
	require.ErrorIs(t, err, cache.ErrNotFound)
	assert.Equal(t, "v2", get(t, b, "k", (&origin[string]{value: "v2"}).compute, cache.Computed))
}

// A Set stands against the computations that began before it.
func TestASetWinsOverAComputationUnderWay(t *testing.T) {
	t.Parallel()
	replicas := fleet[string](t, serve(t).Addr, 2)
	v1 := gate("v1")
	asked := ask(t, replicas[0], "k", v1.compute)
	<-v1.running
	require.NoError(t, replicas[1].Set(t.Context(), "k", "set"))
	close(v1.open)
	require.NoError(t, (<-asked).err)
	for _, r := range replicas {
		assert.Equal(t, "set", get(t, r, "k", never[string](t), cache.Hit))
	}
}

// Who asks another replica after a Set is given what was set, not made to wait for a computation that it has overtaken.
func TestAfterASetNobodyWaitsForTheComputationItOvertook(t *testing.T) {
	t.Parallel()
	replicas := fleet[string](t, serve(t).Addr, 2)
	v1 := gate("v1")
	asked := ask(t, replicas[0], "k", v1.compute)
	<-v1.running
	require.NoError(t, replicas[1].Set(t.Context(), "k", "set"))
	time.Sleep(50 * time.Millisecond) // announced
	select {
	case got := <-ask(t, replicas[0], "k", never[string](t)):
		assert.Equal(t, "set", got.Value)
	case <-time.After(time.Second):
		t.Error("it waits")
	}
	close(v1.open)
	<-asked
}

// Cases 26 and 27: the lease, the fences, or everything is gone while somebody computes; or the fences come back with
// other numbers. That costs a computation, and never brings an older value back or keeps the key from being cached.
func TestLostMemoryCostsAComputationAtMost(t *testing.T) {
	t.Parallel()
	a, b := "a", "b"
	lose := map[string]func(t *testing.T, rdb *redis.Client, key string){
		"lease":  func(t *testing.T, rdb *redis.Client, key string) { rdb.Del(ctx, redisKey("l", key)) },
		"fences": func(t *testing.T, rdb *redis.Client, key string) { rdb.Del(ctx, redisKey("f", key)) },
		"both": func(t *testing.T, rdb *redis.Client, key string) {
			rdb.Del(ctx, redisKey("l", key), redisKey("f", key))
		},
		"everything": func(t *testing.T, rdb *redis.Client, key string) { rdb.FlushAll(ctx) },
		"smaller number": func(t *testing.T, rdb *redis.Client, key string) {
			rdb.HSet(ctx, redisKey("f", key), "last", 1, "bar", 0)
			rdb.Del(ctx, redisKey("l", key))
		},
		"larger number": func(t *testing.T, rdb *redis.Client, key string) {
			larger := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
			rdb.HSet(ctx, redisKey("f", key), "last", larger, "bar", 0)
			rdb.Del(ctx, redisKey("l", key))
		},
	}
	for what, lose := range lose {
		for _, last := range []string{a, b} { // which of two finishes last
			t.Run(fmt.Sprintf("%s, %s ends last", what, last), func(t *testing.T) {
				s := serve(t)
				replicas := fleet[string](t, s.Addr, 2)
				first, second := gate(a), gate(b)
				askedA := ask(t, replicas[0], "k", first.compute)
				<-first.running
				lose(t, replicas[0].rdb, "k")
				askedB := ask(t, replicas[1], "k", second.compute)
				var got [2]answer[string]
				select {
				case <-second.running:
				case <-time.After(100 * time.Millisecond): // the lease is still there: b waits
				}
				if last == a {
					close(second.open)
					if second.runs.Load() > 0 {
						got[1] = <-askedB
						askedB = nil
					}
					close(first.open)
				} else {
					close(first.open)
					got[0] = <-askedA
					askedA = nil
					close(second.open)
				}
				if askedA != nil {
					got[0] = <-askedA
				}
				if askedB != nil {
					got[1] = <-askedB
				}
				require.NoError(t, errors.Join(got[0].err, got[1].err))
				assert.Equal(t, a, got[0].Value)
				runs := first.runs.Load() + second.runs.Load()
				assert.LessOrEqual(t, runs, int64(2))
				if second.runs.Load() > 0 { // it began later
					assert.Equal(t, b, got[1].Value)
				}
				// Whatever happened: by the next call at the latest the key is cached, and an older value never replaces a later.
				next := origin[string]{value: "c"}
				v, err := replicas[0].GetOrCompute(t.Context(), "k", next.compute)
				require.NoError(t, err)
				if second.runs.Load() > 0 {
					assert.NotEqual(t, a, v)
				}
				for _, r := range replicas {
					assert.Equal(t, v, get(t, r, "k", never[string](t), cache.Hit))
				}
				t.Logf("%d computations, then %q", runs+next.runs.Load(), v)
			})
		}
	}
}

// Case 27: the numbers go on upwards after everything is forgotten.
func TestFencesRiseThroughAFlush(t *testing.T) {
	t.Parallel()
	r := join[string](t, serve(t).Addr)
	var last cache.Fence
	for i := range 5 {
		_, err := r.GetOrCompute(t.Context(), "k", func(ctx context.Context) (string, error) {
			fence := cache.FenceOf(ctx)
			assert.Greater(t, fence, last)
			last = fence
			return "v", nil
		})
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, r.rdb.FlushAll(t.Context()).Err())
		} else {
			require.NoError(t, r.Delete(t.Context(), "k"))
		}
	}
}

// Case 42: a full server refuses to store. The value is served, the lease is released, and nothing is left behind.
func TestAFullServerCostsTheStoringOnly(t *testing.T) {
	t.Parallel()
	s := serve(t)
	replicas := fleet[string](t, s.Addr, 2)
	a, b := replicas[0], replicas[1]
	full := func(on bool) {
		limit := map[bool]string{true: "1", false: "0"}[on]
		require.NoError(t, a.rdb.ConfigSet(t.Context(), "maxmemory", limit).Err())
	}
	get(t, a, "before", (&origin[string]{value: "v"}).compute, cache.Computed)

	v1 := gate("v1")
	asked := ask(t, a, "k", v1.compute)
	<-v1.running
	full(true)
	close(v1.open)
	got := <-asked
	require.NoError(t, got.err)
	assert.Equal(t, "v1", got.Value)
	assert.Empty(t, leases(a.rdb))
	assert.Equal(t, 1, a.tally.failures("set"))
	assert.NotContains(t, redistest.Keys(t, a.rdb), redisKey("v", "k"))

	// Full from the start: no lease, no fence; the callers of a process still share.
	o := origin[string]{value: "v2", takes: 100 * time.Millisecond}
	began := time.Now()
	herd(t, replicas, 50, "new", "v2", o.compute)
	assert.LessOrEqual(t, o.runs.Load(), int64(2), "one for each replica")
	assert.Less(t, time.Since(began), time.Second)
	for _, role := range []string{"v", "f", "l"} {
		assert.NotContains(t, redistest.Keys(t, a.rdb), redisKey(role, "new"), "a full server grows no fuller")
	}
	get(t, b, "before", never[string](t), cache.Hit)

	// Deletions work, and still bar what began before them.
	full(false)
	v3 := gate("v3")
	asked = ask(t, a, "before2", v3.compute)
	<-v3.running
	full(true)
	require.NoError(t, b.Delete(t.Context(), "before", "before2"))
	_, err := a.Get(t.Context(), "before")
	require.ErrorIs(t, err, cache.ErrNotFound)
	full(false)
	close(v3.open)
	require.NoError(t, (<-asked).err)
	_, err = a.Get(t.Context(), "before2")
	require.ErrorIs(t, err, cache.ErrNotFound)
}
