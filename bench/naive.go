package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

func naiveArm() Arm {
	return Arm{
		Name:  "naive",
		About: "GET; when it is missing compute and SET",
		New: func(rdb *redis.Client, t Terms) (Replica, error) {
			return &naive{rdb: rdb, prefix: t.Prefix, ttl: t.Fresh}, nil
		},
	}
}

type naive struct {
	rdb    *redis.Client
	prefix string
	ttl    time.Duration
}

func (n *naive) Get(ctx context.Context, key string, compute Compute) ([]byte, error) {
	key = n.prefix + ":" + key
	v, err := n.rdb.Get(ctx, key).Bytes()
	if !errors.Is(err, redis.Nil) {
		return v, err
	}
	if v, err = compute(ctx); err != nil {
		return nil, err
	}
	return v, n.rdb.Set(ctx, key, v, n.ttl).Err()
}

func (n *naive) Delete(ctx context.Context, key string) error {
	return n.rdb.Del(ctx, n.prefix+":"+key).Err()
}

func (n *naive) Close() error { return nil }
