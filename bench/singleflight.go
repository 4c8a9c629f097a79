package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

func singleflightArm() Arm {
	return Arm{
		Name:  "singleflight",
		About: "the same, callers of one replica merged by x/sync/singleflight",
		New: func(rdb *redis.Client, t Terms) (Replica, error) {
			return &merged{naive: naive{rdb: rdb, prefix: t.Prefix, ttl: t.Fresh}}, nil
		},
	}
}

type merged struct {
	naive
	flights singleflight.Group
}

func (m *merged) Get(ctx context.Context, key string, compute Compute) ([]byte, error) {
	v, err, _ := m.flights.Do(key, func() (any, error) { return m.naive.Get(ctx, key, compute) })
	if err != nil {
		return nil, err
	}
	return v.([]byte), nil
}
