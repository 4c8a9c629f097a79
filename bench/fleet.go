package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Fleet is the replicas of one trial: in one process, but each with a client, connections and an arm of its own.
type Fleet struct {
	Meter       Meter
	Replicas    []Replica
	FailedSteps int // Redis steps that failed without an error to a caller, once the replicas rest

	clients []*redis.Client
}

func openFleet(addr string, arm Arm, t Terms, replicas int) (*Fleet, error) {
	f := &Fleet{}
	for range replicas {
		rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: f.Meter.dial})
		f.clients = append(f.clients, rdb)
		r, err := arm.New(rdb, t)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.Replicas = append(f.Replicas, r)
	}
	return f, nil
}

// herd calls f from so many callers on every replica, all released at once, and waits for them.
func (f *Fleet) herd(callers int, call func(r Replica)) {
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for _, r := range f.Replicas {
		for range callers {
			ready.Add(1)
			done.Go(func() {
				ready.Done()
				<-gate
				call(r)
			})
		}
	}
	ready.Wait()
	close(gate)
	done.Wait()
}

// warm lets every caller make a call, so that connections, subscriptions and scripts are there, and forgets what it cost.
func (f *Fleet) warm(ctx context.Context, callers int) error {
	var calls Calls
	origin := newOrigin(0, nil)
	f.herd(callers, func(r Replica) { calls.make(ctx, r, "warm-up", origin) })
	for _, c := range calls.list() {
		if c.Err != nil {
			return fmt.Errorf("warm-up: %w", c.Err)
		}
	}
	f.Meter.reset()
	return nil
}

// rest closes the replicas, so that what they do behind answers has been done and counted.
func (f *Fleet) rest() error {
	var errs []error
	for _, r := range f.Replicas {
		errs = append(errs, r.Close())
		if r, ok := r.(interface{ FailedSteps() int }); ok {
			f.FailedSteps += r.FailedSteps()
		}
	}
	f.Replicas = nil
	return errors.Join(errs...)
}

func (f *Fleet) close() error {
	errs := []error{f.rest()}
	for _, rdb := range f.clients {
		errs = append(errs, rdb.Close())
	}
	f.clients = nil
	return errors.Join(errs...)
}
