package main

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

// rawArm is the floor under every cache: the client's GET and nothing else.
func rawArm() Arm {
	return Arm{Name: "raw", New: func(rdb *redis.Client, t Terms) (Replica, error) {
		return raw{rdb: rdb, prefix: t.Prefix}, nil
	}}
}

type raw struct {
	rdb    *redis.Client
	prefix string
}

func (r raw) Get(ctx context.Context, key string, compute Compute) ([]byte, error) {
	v, err := r.rdb.Get(ctx, r.prefix+":"+key).Bytes()
	if err == nil {
		return v, nil
	}
	if v, err = compute(ctx); err != nil { // once, to fill the key
		return nil, err
	}
	return v, r.rdb.Set(ctx, r.prefix+":"+key, v, outlast).Err()
}

func (r raw) Delete(context.Context, string) error { return nil }

func (r raw) Close() error { return nil }

// open gives a benchmark one replica of an arm, with a client as its users have it.
func open(b *testing.B, rdb *redis.Client, arm Arm) Replica {
	b.Helper()
	r, err := arm.New(rdb, Terms{Prefix: "bench:" + arm.Name, Fresh: outlast})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := r.Close(); err != nil {
			b.Error(err)
		}
	})
	return r
}

// BenchmarkHit reads one hot key of 512 bytes. Compare the arms: benchstat -col /arm
func BenchmarkHit(b *testing.B) {
	rdb := redistest.Client(b, redistest.Start(b))
	compute := newOrigin(0, nil).compute("hot")
	for _, arm := range []Arm{rawArm(), singleflightArm(), bellwetherArm()} {
		for _, callers := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("arm=%s/callers=%d", arm.Name, callers), func(b *testing.B) {
				r := open(b, rdb, arm)
				if _, err := r.Get(b.Context(), "hot", compute); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				hit(b, callers, func() error {
					_, err := r.Get(b.Context(), "hot", compute)
					return err
				})
			})
		}
	}
}

// hit calls get from so many goroutines.
func hit(b *testing.B, callers int, get func() error) {
	if callers == 1 {
		for b.Loop() {
			if err := get(); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := get(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
