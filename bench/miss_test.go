package main

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

// BenchmarkMiss asks for a new key each time and computes it in no time: what is measured is what a miss costs beside the work.
func BenchmarkMiss(b *testing.B) {
	rdb := redistest.Client(b, redistest.Start(b))
	for _, arm := range arms() {
		b.Run("arm="+arm.Name+"/callers=1", func(b *testing.B) {
			miss := missing(b, open(b, rdb, arm))
			b.ReportAllocs()
			for b.Loop() {
				miss()
			}
		})
		b.Run("arm="+arm.Name+"/callers=parallel", func(b *testing.B) {
			miss := missing(b, open(b, rdb, arm))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					miss()
				}
			})
		})
	}
}

// keyNumber makes keys that no benchmark has asked for before, whatever its name and however often it is run.
var keyNumber atomic.Int64

func missing(b *testing.B, r Replica) func() {
	origin := newOrigin(0, nil)
	ctx := b.Context()
	return func() {
		key := "miss-" + strconv.FormatInt(keyNumber.Add(1), 10)
		if _, err := r.Get(ctx, key, origin.compute(key)); err != nil {
			b.Error(err)
		}
	}
}
