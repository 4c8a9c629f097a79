package main

import "context"

func coldHerd() Scenario {
	return Scenario{
		Name:  "cold-herd",
		About: "all callers of all replicas ask for one missing key at once",
		Plan: func(p Params) Plan {
			return Plan{Terms: Terms{Fresh: outlast}, Compute: p.Compute}
		},
		Run: func(ctx context.Context, t *Trial) error {
			t.fleet.herd(t.Callers, func(r Replica) { t.call(ctx, r, "cold") })
			return nil
		},
	}
}
