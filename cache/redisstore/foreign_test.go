package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plants are what others may have put where an entry, its fences or its lease should be, without a TTL.
var plants = map[string]func(p redis.Pipeliner, key string){
	"empty string": func(p redis.Pipeliner, key string) { p.Set(ctx, key, "", 0) },
	"garbage":      func(p redis.Pipeliner, key string) { p.Set(ctx, key, "\x00\xffgarbage\r\n", 0) },
	"number":       func(p redis.Pipeliner, key string) { p.Set(ctx, key, "9223372036854775807", 0) },
	"list":         func(p redis.Pipeliner, key string) { p.RPush(ctx, key, "a", "b") },
	"set":          func(p redis.Pipeliner, key string) { p.SAdd(ctx, key, "a") },
	"sorted set":   func(p redis.Pipeliner, key string) { p.ZAdd(ctx, key, redis.Z{Score: 1, Member: "last"}) },
	"stream": func(p redis.Pipeliner, key string) {
		p.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{"last", "1"}})
	},
	"others' hash":  func(p redis.Pipeliner, key string) { p.HSet(ctx, key, "name", "value") },
	"short-lived":   func(p redis.Pipeliner, key string) { p.Set(ctx, key, "garbage", 5*time.Millisecond) },
	"empty numbers": func(p redis.Pipeliner, key string) { p.HSet(ctx, key, "last", "", "bar", "") },
}

// Case 26 of the guarantees, case 80: bytes are not trusted. A fleet serves the value, computes it once, and keeps it.
func TestWhateverStandsAtOurKeysTheValueIsComputedOnceAndKept(t *testing.T) {
	t.Parallel()
	replicas := fleet[string](t, serve(t).Addr, 2)
	for kind, plant := range plants {
		for _, role := range []string{"v", "f", "l"} {
			t.Run(role+" "+kind, func(t *testing.T) {
				key := role + kind
				write(t, replicas[0].rdb, func(p redis.Pipeliner) { plant(p, redisKey(role, key)) })
				_, err := replicas[0].Get(t.Context(), key)
				require.ErrorIs(t, err, cache.ErrNotFound)
				o := origin[string]{value: "v", takes: 30 * time.Millisecond}
				herd(t, replicas, 5, key, "v", o.compute)
				assert.EqualValues(t, 1, o.runs.Load())
				for _, r := range replicas {
					get(t, r, key, never[string](t), cache.Hit)
				}
				require.NoError(t, replicas[1].Delete(t.Context(), key))
				get(t, replicas[0], key, o.compute, cache.Computed)
				get(t, replicas[1], key, never[string](t), cache.Hit)
				for _, r := range replicas {
					for _, step := range []string{"get", "begin", "set"} {
						assert.Zero(t, r.tally.failures(step), "it is no trouble with Redis")
					}
				}
			})
		}
	}
}

// The same beside an entry that stands: it is served, deleted and renewed all the same.
func TestWhateverStandsInPlaceOfTheFencesAnEntryIsServedAndDeleted(t *testing.T) {
	t.Parallel()
	r := join[string](t, serve(t).Addr)
	for kind, plant := range plants {
		t.Run(kind, func(t *testing.T) {
			o := origin[string]{value: "v"}
			get(t, r, kind, o.compute, cache.Computed)
			write(t, r.rdb, func(p redis.Pipeliner) {
				p.Del(ctx, redisKey("f", kind))
				plant(p, redisKey("f", kind))
			})
			get(t, r, kind, never[string](t), cache.Hit)
			require.NoError(t, r.Delete(t.Context(), kind))
			get(t, r, kind, o.compute, cache.Computed)
			get(t, r, kind, never[string](t), cache.Hit)
		})
	}
}

// Numbers that no store of ours wrote, in each place of a number. None of them may keep the key from being cached.
func TestNoNumberAmongTheFencesKeepsAKeyFromBeingCached(t *testing.T) {
	t.Parallel()
	r := join[string](t, serve(t).Addr)
	get(t, r, "schema", (&origin[string]{}).compute, cache.Computed)
	schema := entryField(t, r.rdb, "schema")
	for _, number := range []string{"", "x", "nan", "inf", "-inf", "1e308", "-1e308", "0x7fffffffffffffff", "-1", "0", "1", "1.5", "9007199254740989",
		"9007199254740990", "9007199254740991", "9007199254740992", "9223372036854775807", "99999999999999999999", " 7 "} {
		for _, field := range []string{"last", "bar", "of:" + schema, "until:" + schema} {
			for _, rest := range []string{"and nothing else", "among good ones"} {
				t.Run(fmt.Sprintf("%s=%q %s", strings.TrimRight(field, "0123456789abcdef"), number, rest), func(t *testing.T) {
					key := t.Name()
					o := origin[string]{value: "v"}
					if rest == "among good ones" {
						get(t, r, key, o.compute, cache.Computed)
						require.NoError(t, r.rdb.HSet(ctx, redisKey("f", key), field, number).Err())
						require.NoError(t, r.rdb.Del(ctx, redisKey("v", key)).Err())
					} else {
						require.NoError(t, r.rdb.HSet(ctx, redisKey("f", key), field, number).Err())
					}
					for range 3 {
						got, err := r.Lookup(t.Context(), key, o.compute)
						require.NoError(t, err)
						assert.Equal(t, "v", got.Value)
					}
					most := int64(1)
					if rest == "among good ones" {
						most = 2
					}
					assert.LessOrEqual(t, o.runs.Load(), most)
					require.NoError(t, r.Delete(t.Context(), key))
					get(t, r, key, o.compute, cache.Computed)
					get(t, r, key, never[string](t), cache.Hit)
				})
			}
		}
	}
}

// Case 80: what was stored, cut short, lengthened and with flipped bits, in the stamp and behind it.
func TestADamagedEntryIsCountedAndOverwrittenOnce(t *testing.T) {
	t.Parallel()
	r := join[map[string]string](t, serve(t).Addr)
	o := origin[map[string]string]{value: map[string]string{"a": "b"}}
	get(t, r, "k", o.compute, cache.Computed)
	schema := entryField(t, r.rdb, "k")
	whole, err := r.rdb.HGet(t.Context(), redisKey("v", "k"), schema).Result()
	require.NoError(t, err)

	damaged := map[string]string{
		"empty": "", "json": `{"a":"b"}`, "more": whole + "x", "twice": whole + whole, "zeros": strings.Repeat("\x00", len(whole)),
		"stamped garbage": whole[:40] + "garbage", "the stamp alone": whole[:40], "all but the stamp": whole[40:],
	}
	for i := range whole {
		damaged[fmt.Sprintf("the first %d bytes", i)] = whole[:i]
		damaged[fmt.Sprintf("byte %d flipped", i)] = whole[:i] + string([]byte{whole[i] ^ 1<<(i%8)}) + whole[i+1:]
	}
	for what, entry := range damaged {
		require.NoError(t, r.rdb.HSet(t.Context(), redisKey("v", "k"), schema, entry).Err())
		runs, seen := o.runs.Load(), r.tally.damaged.Load()
		for range 2 {
			got, err := r.Lookup(t.Context(), "k", o.compute)
			require.NoError(t, err, what)
			assert.Equal(t, o.value, got.Value, what)
		}
		assert.Equal(t, runs+1, o.runs.Load(), what)
		if what != "all but the stamp" { // nothing is wrong with that but that it has no age
			assert.Greater(t, r.tally.damaged.Load(), seen, what)
		}
	}
}

// An entry that was moved to another key, or to another type's field, is none.
func TestAnEntryOfAnotherKeyOrTypeIsNotServed(t *testing.T) {
	t.Parallel()
	s := serve(t)
	strings, numbers := join[string](t, s.Addr), join[int](t, s.Addr)
	get(t, strings, "k", (&origin[string]{value: "v"}).compute, cache.Computed)
	get(t, numbers, "n", (&origin[int]{value: 1}).compute, cache.Computed)
	rdb := strings.rdb
	entry, err := rdb.HGet(t.Context(), redisKey("v", "k"), entryField(t, rdb, "k")).Result()
	require.NoError(t, err)
	require.NoError(t, rdb.Copy(t.Context(), redisKey("v", "k"), redisKey("v", "copy"), 0, false).Err())
	require.NoError(t, rdb.HSet(t.Context(), redisKey("v", "n"), entryField(t, rdb, "n"), entry).Err())

	assert.Equal(t, "w", get(t, strings, "copy", (&origin[string]{value: "w"}).compute, cache.Computed))
	assert.Equal(t, 2, get(t, numbers, "n", (&origin[int]{value: 2}).compute, cache.Computed))
	assert.EqualValues(t, 1, min(1, strings.tally.damaged.Load()))
	assert.EqualValues(t, 1, min(1, numbers.tally.damaged.Load()))
}
