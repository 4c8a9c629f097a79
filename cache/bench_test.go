package cache_test

import (
	"context"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

func BenchmarkHitInMemory(b *testing.B) {
	c, err := cache.New[string](cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Hour}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	compute := func(context.Context) (string, error) { return "value", nil }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.GetOrCompute(b.Context(), "key", compute); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMissInMemory(b *testing.B) {
	c, err := cache.New[string](cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Hour}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	compute := func(ctx context.Context) (string, error) { return "value", cache.Lasting(ctx, stale.Policy{Fresh: 1}) }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.GetOrCompute(b.Context(), "key", compute); err != nil {
			b.Fatal(err)
		}
	}
}
