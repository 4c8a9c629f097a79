package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Holder is what a child process is told: take this key's computation and never finish it.
type Holder struct {
	Addr  string
	Arm   string
	Key   string
	Terms Terms
	Limit time.Duration // when the child ends by itself
}

const (
	holderEnv  = "BELLWETHER_BENCH_HOLDER"
	holderSays = "computing"
)

// holderFromEnv tells whether this process was started as a holder. Both main and TestMain ask first.
func holderFromEnv() (h Holder, ok bool) {
	s, ok := os.LookupEnv(holderEnv)
	return h, ok && json.Unmarshal([]byte(s), &h) == nil
}

// run is the child: it says so on stdout when it computes, and ends when its parent is gone or after Limit.
func (h Holder) run() int {
	ctx, cancel := context.WithTimeout(context.Background(), h.Limit)
	defer cancel()
	go func() { // the parent holds the other end of stdin: it ends with the parent, however the parent ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	i := slices.IndexFunc(arms(), func(a Arm) bool { return a.Name == h.Arm })
	if i < 0 {
		return 1
	}
	rdb := redis.NewClient(&redis.Options{Addr: h.Addr})
	defer rdb.Close()
	r, err := arms()[i].New(rdb, h.Terms)
	if err != nil {
		return 1
	}
	_, _ = r.Get(ctx, h.Key, func(ctx context.Context) ([]byte, error) {
		fmt.Println(holderSays)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return 1
}
