package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
	"github.com/stretchr/testify/assert"
)

var hour = stale.Policy{Fresh: time.Hour}

func TestAnAnswerThatIsNotStoredIsNotForThoseWhoAskAfterADeletion(t *testing.T) {
	for _, kind := range []string{"stored", "nostore", "unencodable"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := cache.NewMemory()
				o := cache.Options[any]{Policy: hour}
				a, err := cache.New[any](newQuiet(m), o)
				assert.NoError(t, err)
				defer a.Close()
				b, _ := cache.New[any](newQuiet(m), o)
				defer b.Close()
				gate := make(chan struct{})
				var source atomic.Value
				source.Store("old")
				compute := func(ctx context.Context) (any, error) {
					v := source.Load().(string)
					if kind == "nostore" {
						cache.NoStore(ctx)
					}
					<-gate
					if kind == "unencodable" {
						return struct {
							C chan int
							S string
						}{S: v}, nil
					}
					return v, nil
				}
				go a.Lookup(t.Context(), "k", compute)
				synctest.Wait()
				source.Store("new")
				assert.NoError(t, b.Delete(t.Context(), "k")) // has returned
				done := make(chan any, 1)
				go func() { r, _ := a.Lookup(t.Context(), "k", compute); done <- r.Value }()
				synctest.Wait()
				close(gate)
				got := fmt.Sprint(<-done)
				assert.False(t, strings.Contains(got, "old"), "served %v", got)
			})
		})
	}
}

// T2
// T3
// T4

func TestADeletionEndsTheCooldownOfWhatBeganBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hour
		p.Cooldown = time.Minute
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: p})
		gate := make(chan struct{})
		go c.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { <-gate; return "", errors.New("old source") })
		synctest.Wait()
		assert.NoError(t, c.Delete(t.Context(), "k"))
		close(gate)
		synctest.Wait()
		v, err := c.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { return "new", nil })
		assert.NoError(t, err)
		assert.Equal(t, "new", v)
	})
}

func TestARefreshThatMustNotBeStoredIsFollowedByAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Second, WhileRevalidate: time.Hour}})
		var runs atomic.Int64
		compute := func(ctx context.Context) (string, error) {
			if runs.Add(1) > 1 {
				cache.NoStore(ctx)
			}
			time.Sleep(20 * time.Millisecond)
			return "v", nil
		}
		c.GetOrCompute(t.Context(), "k", compute)
		time.Sleep(time.Second)
		for range 10_000 { // 10 s of reads, 1000/s
			c.GetOrCompute(t.Context(), "k", compute)
			time.Sleep(time.Millisecond)
		}
		t.Log("runs:", runs.Load())
		assert.Less(t, runs.Load(), int64(15))
	})
}

func TestTheLimitOfAComputationIsNobodysOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: hour, Limit: time.Second, Wait: 30 * time.Second})
		var runs atomic.Int64
		hang := func(ctx context.Context) (string, error) { runs.Add(1); <-ctx.Done(); return "", ctx.Err() }
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Second+500*time.Millisecond)
				defer cancel()
				_, err := c.GetOrCompute(ctx, "k", hang)
				t.Log(i, time.Since(began), err)
			})
		}
		wg.Wait()
		assert.EqualValues(t, 1, runs.Load())
	})
}

func TestARefusedRequestForTheOwnKeyLeavesNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: hour})
		var runs atomic.Int64
		var compute cache.Compute[string]
		compute = func(ctx context.Context) (string, error) {
			runs.Add(1)
			time.Sleep(time.Millisecond)
			c.Delete(ctx, "k")
			return c.GetOrCompute(ctx, "k", compute)
		}
		_, err := c.GetOrCompute(t.Context(), "k", compute)
		t.Log(err)
		time.Sleep(10 * time.Second)
		assert.LessOrEqual(t, runs.Load(), int64(2))
		_ = recompute.ErrBusy
	})
}

func TestADeletionUnderAnEndedContextIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, cache.NewMemory(), cache.Options[string]{Policy: hour})
		c.Set(t.Context(), "k", "old")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		t.Log(c.Delete(ctx, "k"))
		time.Sleep(time.Minute)
		_, err := c.Get(t.Context(), "k")
		assert.ErrorIs(t, err, cache.ErrNotFound)
	})
}

func TestNobodyQueuesForAnAnswerThatIsNotStored(t *testing.T) {
	for _, kind := range []string{"nostore", "negative0", "unencodable", "panic"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := cache.NewMemory()
				var runs atomic.Int64
				var wg sync.WaitGroup
				began := time.Now()
				var last atomic.Int64
				for range 10 {
					c, err := cache.New[any](m, cache.Options[any]{Policy: hour})
					assert.NoError(t, err)
					defer c.Close()
					for range 5 {
						wg.Go(func() {
							c.Lookup(t.Context(), "k", func(ctx context.Context) (any, error) {
								runs.Add(1)
								time.Sleep(time.Second)
								switch kind {
								case "nostore":
									cache.NoStore(ctx)
								case "negative0":
									return nil, cache.ErrNotFound
								case "unencodable":
									return make(chan int), nil
								case "panic":
									panic("x")
								}
								return "v", nil
							})
							last.Store(max(last.Load(), int64(time.Since(began))))
						})
					}
				}
				wg.Wait()
				t.Log(kind, "runs", runs.Load(), "last after", time.Duration(last.Load()))
				assert.LessOrEqual(t, time.Duration(last.Load()), 2500*time.Millisecond)
			})
		})
	}
}

func TestAnyFailureBehindAnAnswerIsFollowedByAPause(t *testing.T) {
	for _, kind := range []string{"plain", "own", "ctx"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := open(t, cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Second, WhileRevalidate: time.Hour}})
				var runs atomic.Int64
				c.Set(t.Context(), "k", "v")
				time.Sleep(time.Second)
				for range 5000 {
					ctx, cancel := context.WithCancel(t.Context())
					c.GetOrCompute(ctx, "k", func(context.Context) (string, error) {
						runs.Add(1)
						time.Sleep(5 * time.Millisecond)
						switch kind {
						case "own":
							return "", cache.Own(errors.New("mine"))
						case "ctx":
							return "", fmt.Errorf("fetch: %w", ctx.Err())
						}
						return "", errors.New("down")
					})
					cancel() // as net/http does when the handler returns
					time.Sleep(time.Millisecond)
				}
				t.Log(kind, runs.Load())
				assert.Less(t, runs.Load(), int64(10))
			})
		})
	}
}

func TestWithoutEventsADeletionElsewhereEndsTheCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		p := hour
		p.Cooldown = time.Minute
		a := open(t, newQuiet(m), cache.Options[string]{Policy: p})
		b := open(t, newQuiet(m), cache.Options[string]{Policy: p})
		a.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { return "", errors.New("old") })
		assert.NoError(t, b.Delete(t.Context(), "k"))
		v, err := a.GetOrCompute(t.Context(), "k", func(context.Context) (string, error) { return "new", nil })
		assert.NoError(t, err)
		assert.Equal(t, "new", v)
	})
}
