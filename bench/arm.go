package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Compute is the slow work that a cache saves.
type Compute = func(ctx context.Context) ([]byte, error)

// Replica is one process of the fleet as its callers see it.
type Replica interface {
	Get(ctx context.Context, key string, compute Compute) ([]byte, error)
	Delete(ctx context.Context, key string) error
	Close() error
}

// Arm is one way to put Redis in front of a computation.
type Arm struct {
	Name  string
	About string
	New   func(rdb *redis.Client, t Terms) (Replica, error)
	Site  func(rdb *redis.Client, t Terms) (Site, error) // over HTTP, where that is more than a handler that asks a Replica
}

// Terms are what a scenario asks of every arm. An arm that has no word for one of them leaves it out.
type Terms struct {
	Prefix          string        // of every key that is written
	Fresh           time.Duration // lifetime of a value
	WhileRevalidate time.Duration // then serve it once more and recompute behind the answer
	IfError         time.Duration // then serve it only in place of an error or a wait
	Cooldown        time.Duration // after a failed computation
	Lease           time.Duration // silence of a holder after which another may take over
}

func arms() []Arm { return []Arm{naiveArm(), singleflightArm(), bellwetherArm()} }
