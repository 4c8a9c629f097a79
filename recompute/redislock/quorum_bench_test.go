package redislock_test

import (
	"testing"

	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// Acquire and release of a free lease.
func BenchmarkQuorum(b *testing.B) {
	cycle := func(b *testing.B, l recompute.Locker) {
		for b.Loop() {
			lease, err := l.Acquire(b.Context(), "key", long)
			if err != nil {
				b.Fatal(err)
			}
			if err := lease.Release(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("one server", func(b *testing.B) { cycle(b, must(redistest.Client(b, redistest.Start(b)), redislock.Options{})) })
	for name, of := range map[string]int{"3 servers": 3, "5 servers": 5} {
		b.Run(name, func(b *testing.B) {
			var addrs []string
			for _, s := range startEnsemble(b, of).servers {
				addrs = append(addrs, s.Addr)
			}
			cycle(b, quorum(b, patience, addrs))
		})
	}
	b.Run("3 servers, one frozen", func(b *testing.B) {
		e := startEnsemble(b, 3)
		var addrs []string
		for _, s := range e.servers {
			addrs = append(addrs, s.Addr)
		}
		q := quorum(b, redislock.QuorumOptions{}, addrs)
		e.learned(b, q)
		if err := e.servers[2].Pause(); err != nil {
			b.Fatal(err)
		}
		cycle(b, q)
		if err := e.servers[2].Resume(); err != nil {
			b.Fatal(err)
		}
	})
}
