package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"time"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
)

// Trial is one arm going through one scenario once.
type Trial struct {
	Params
	addr   string
	server *redisserver.Server // of its own, for scenarios that break it, else nil
	proxy  *faultproxy.Proxy   // before that server
	arm    Arm
	plan   Plan
	rand   *mathrand.Rand
	fleet  *Fleet
	origin *Origin
	calls  Calls
	notes  []Note
}

// Note is a figure that only one scenario has.
type Note struct {
	Name  string
	Value float64
	Text  string
}

func runTrial(ctx context.Context, p Params, addr string, s Scenario, arm Arm, run int) (Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit(), errors.New("bench: the trial took too long"))
	defer cancel()
	t, err := newTrial(p, addr, s, arm, run)
	defer t.end()
	if err != nil {
		return Result{}, err
	}

	runtime.GC() // the last trial's garbage is not this one's
	if err := t.fleet.warm(ctx, p.Callers); err != nil {
		return Result{}, err
	}
	if err := s.Run(ctx, t); err != nil {
		return Result{}, err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return Result{}, errors.New("interrupted")
	}
	if err := t.fleet.rest(); err != nil {
		return Result{}, fmt.Errorf("close: %w", err)
	}
	return t.result(s.Name, run), nil
}

func newTrial(p Params, addr string, s Scenario, arm Arm, run int) (*Trial, error) {
	t := &Trial{Params: p, addr: addr, arm: arm, plan: s.Plan(p)}
	// Keys of their own for each trial: nothing is flushed, and each key goes with its TTL.
	t.plan.Terms.Prefix = "bellwether-bench:" + rand.Text()
	t.rand = mathrand.New(mathrand.NewPCG(p.Seed, uint64(run))) // the same order of keys for each arm
	t.origin = newOrigin(t.plan.Compute, t.plan.Fail)
	t.origin.crowd = t.plan.Crowd
	if t.plan.Replicas > 0 {
		t.Replicas = min(t.Replicas, t.plan.Replicas)
	}
	if t.plan.Callers > 0 {
		t.Callers = min(t.Callers, t.plan.Callers)
	}
	if t.plan.HTTP {
		arm = overHTTP(arm, t.Callers)
	}
	var err error
	if s.Alone {
		if err := t.isolate(); err != nil {
			return t, err
		}
	}
	t.fleet, err = openFleet(t.addr, arm, t.plan.Terms, t.Replicas)
	return t, err
}

// isolate gives the trial a server of its own, behind a proxy.
func (t *Trial) isolate() (err error) {
	if t.server, err = redisserver.Start(); err != nil {
		return err
	}
	if t.proxy, err = faultproxy.Open(t.server.Addr); err == nil {
		t.addr = t.proxy.Addr
	}
	return err
}

// end closes what the trial has opened.
func (t *Trial) end() {
	if t.fleet != nil {
		_ = t.fleet.close()
	}
	if t.proxy != nil {
		t.proxy.Close()
	}
	if t.server != nil {
		_ = t.server.Stop() // a temporary directory may be left
	}
}

// call makes one measured call.
func (t *Trial) call(ctx context.Context, r Replica, key string) {
	t.calls.make(ctx, r, key, t.origin)
}

func (t *Trial) note(name string, value float64, text string) {
	t.notes = append(t.notes, Note{name, value, text})
}

// latest is when the last of the calls returned.
func latest(calls []Call) (end time.Duration) {
	for _, c := range calls {
		end = max(end, c.End)
	}
	return end
}
