package main

import (
	"context"
	"errors"
	"fmt"
)

var errOrigin = errors.New("the origin is down")

func failing() Scenario {
	return Scenario{
		Name:  "failing",
		About: "all callers ask for one missing key whose computation fails every time",
		Plan: func(p Params) Plan {
			return Plan{Terms: Terms{Fresh: outlast, Cooldown: 10 * p.Compute}, Compute: p.Compute, Fail: errOrigin}
		},
		Run: func(ctx context.Context, t *Trial) error {
			start := now()
			t.fleet.herd(t.Callers, func(r Replica) { t.call(ctx, r, "broken") })
			told := latest(t.calls.list()) - start
			t.note("all_told_ms", millis(told), fmt.Sprintf("all callers told after %s ms", figure(told)))
			return nil
		},
	}
}
