package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func deadHolder() Scenario {
	return Scenario{
		Name:  "dead-holder",
		About: "another process computes the key and is killed (SIGKILL) while all callers wait",
		Plan: func(p Params) Plan {
			return Plan{Terms: Terms{Fresh: outlast, Lease: p.Lease}, Compute: p.Compute}
		},
		Run: runDeadHolder,
	}
}

func runDeadHolder(ctx context.Context, t *Trial) error {
	const key = "orphan"
	victim, err := startHolder(ctx, Holder{
		Addr: t.addr, Arm: t.arm.Name, Key: key, Terms: t.plan.Terms, Limit: t.limit(),
	})
	if err != nil {
		return err
	}
	defer victim.kill()

	var killed time.Duration
	killer := time.AfterFunc(t.plan.Compute/2, func() {
		killed = now()
		victim.kill()
	})
	t.fleet.herd(t.Callers, func(r Replica) { t.call(ctx, r, key) })
	if killer.Stop() {
		return errors.New("the callers were answered before the holder could be killed: give a longer -compute")
	}
	<-victim.dead

	last := latest(t.calls.list()) - killed
	t.note("last_answer_after_kill_ms", millis(last), fmt.Sprintf("last answer %s ms after the kill", figure(last)))
	return nil
}
