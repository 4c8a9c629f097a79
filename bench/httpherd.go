package main

import "context"

func httpHerd() Scenario {
	return Scenario{
		Name:  "http-herd",
		About: "all clients of all replicas ask for one missing page at once, over HTTP; Bellwether is a middleware on chi",
		Plan: func(p Params) Plan {
			return Plan{
				Terms: Terms{Fresh: outlast}, Compute: p.Compute, HTTP: true,
				Replicas: 10, Callers: 100, // each is two open sockets
			}
		},
		Run: func(ctx context.Context, t *Trial) error {
			t.fleet.herd(t.Callers, func(r Replica) { t.call(ctx, r, "cold") })
			return nil
		},
	}
}
