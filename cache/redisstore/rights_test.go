package redisstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A user with the rights that are documented can do everything; one with less shows.
func TestTheDocumentedRightsOfAUserAreEnough(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := redistest.Client(t, s)
	rights := strings.Fields(strings.ReplaceAll(redisstore.Rights, "bellwether:", prefix+":"))
	trouble := func(rights []string) int64 {
		args := []any{"ACL", "SETUSER", "limited", "reset", "on", ">secret"}
		for _, right := range rights {
			args = append(args, right)
		}
		require.NoError(t, admin.Do(ctx, args...).Err())
		r := enlist(t, s.Addr, func(s *setup[string]) {
			s.redis.Username, s.redis.Password = "limited", "secret"
			s.cache.Policy.Cooldown = 10 * time.Millisecond
			s.cache.Lease = 450 * time.Millisecond
		})
		var refused int64
		if !eventually(r.tally.hears, 2*time.Second) {
			refused++
		}
		slow := func(context.Context) (string, error) { time.Sleep(200 * time.Millisecond); return "v", nil }
		for _, call := range []func() error{
			func() error { _, err := r.GetOrCompute(ctx, "k", slow); return err },
			func() error { _, err := r.Get(ctx, "k"); return err },
			func() error { return r.Set(ctx, "k", "w") },
			func() error { return r.Delete(ctx, "k") },
			func() error {
				_, err := r.GetOrCompute(ctx, "absent", func(context.Context) (string, error) { return "", cache.ErrNotFound })
				if err == cache.ErrNotFound {
					return nil
				}
				return err
			},
			func() error {
				_, _ = r.GetOrCompute(ctx, "failing", func(context.Context) (string, error) { return "", assert.AnError })
				return nil
			},
		} {
			if call() != nil {
				refused++
			}
		}
		for _, step := range []string{"get", "begin", "set", "fail"} {
			refused += int64(r.tally.failures(step))
		}
		return refused + r.tally.failed.Load() + r.tally.lost.Load()
	}
	require.Zero(t, trouble(rights))
	rarer := []string{"+evalsha", "+hkeys", "+hlen", "+hdel", "+type", "+publish"} // other ways need them
	for i, right := range rights {
		if slices.Contains(rarer, right) {
			continue
		}
		rest := append(append([]string{}, rights[:i]...), rights[i+1:]...)
		assert.Positive(t, trouble(rest), "without %s", right)
	}
}

func eventually(ok func() bool, patience time.Duration) bool {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(tick) {
		if ok() {
			return true
		}
	}
	return false
}
