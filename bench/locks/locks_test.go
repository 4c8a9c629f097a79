package locks_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
)

// one is a client as a process has: with options that users are told to set, so that a deadline ends a command.
func one(b *testing.B, s *redisserver.Server) *redis.Client {
	return redistest.Client(b, s, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
}

// Acquire and release when nobody else wants the lock. server-µs is the server's part of it.
func BenchmarkUncontended(b *testing.B) {
	s := redistest.Start(b)
	for _, arm := range arms {
		b.Run(arm.name, func(b *testing.B) {
			do := arm.open(b, one(b, s))
			if err := do(b.Context(), "warm", func() {}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			before := worked(b, s)
			for b.Loop() {
				if err := do(b.Context(), "key", func() {}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((worked(b, s)-before)*1e6/float64(b.N), "server-µs/op")
		})
	}
}

// worked is how many seconds the server's main thread has worked.
func worked(b *testing.B, s *redisserver.Server) (seconds float64) {
	cpu, err := one(b, s).InfoMap(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, part := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		n, err := strconv.ParseFloat(cpu["CPU"][part], 64)
		if err != nil {
			b.Fatal(err)
		}
		seconds += n
	}
	return seconds
}

const (
	processes = 8
	holds     = 50 * time.Millisecond
	rests     = 20 * time.Millisecond
)

// Eight processes want one lock all the time, and each holds it for 50 ms and rests for 20. p50 and p99 are the time from the end
// of one's work to the beginning of another's; commands are counted for each such hand-off. Who takes the lock again at once, before the
// others notice that it was free, has handed nothing over: share says which part of all runs were hand-offs.
func BenchmarkHandOff(b *testing.B) {
	for _, arm := range arms {
		if arm.asksOnce {
			continue
		}
		b.Run(arm.name, func(b *testing.B) {
			s := redistest.Start(b)
			ways := make([]func(context.Context, string, func()) error, processes)
			for i := range ways {
				ways[i] = arm.open(b, one(b, s))
				if err := ways[i](b.Context(), "warm", func() {}); err != nil {
					b.Fatal(err)
				}
			}
			report(b, []*redisserver.Server{s}, ways)
		})
	}
}

func report(b *testing.B, servers []*redisserver.Server, ways []func(context.Context, string, func()) error) {
	b.Helper()
	var counters []*redistest.Counter
	for _, s := range servers {
		counters = append(counters, redistest.Commands(b, s))
	}
	b.ResetTimer()
	took, runs := handOffs(b, ways)
	b.StopTimer()
	commands := 0
	for _, c := range counters {
		commands += len(c.Stop())
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[(99*len(took)-1)/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(commands)/float64(len(took)), "commands/handoff")
	b.ReportMetric(float64(len(took))/float64(runs), "share")
}

func handOffs(b *testing.B, ways []func(context.Context, string, func()) error) (took []time.Duration, runs int) {
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	var ended time.Time // what follows is guarded by the lock that is measured
	var last int
	for i, do := range ways {
		all.Go(func() {
			for left.Load() > 0 {
				err := do(b.Context(), "key", func() {
					runs++
					if !ended.IsZero() && last != i {
						took = append(took, time.Since(ended))
					}
					if left.Add(-1) >= 0 {
						time.Sleep(holds)
					}
					last, ended = i, time.Now()
				})
				if err != nil {
					b.Error(err)
					return
				}
				time.Sleep(rests)
			}
		})
	}
	all.Wait()
	if len(took) == 0 {
		took = append(took, 0)
	}
	return took, runs
}
