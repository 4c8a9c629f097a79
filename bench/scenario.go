package main

import (
	"context"
	"time"
)

// Scenario is one thing that happens to a fleet.
type Scenario struct {
	Name  string
	About string
	Plan  func(p Params) Plan
	Run   func(ctx context.Context, t *Trial) error
	Alone bool // it breaks the server: each trial has one of its own, behind a proxy that loses what it is told to
}

// Plan is what a scenario asks of the arms and of the origin.
type Plan struct {
	Terms   Terms
	Compute time.Duration
	Fail    error // what each computation ends in; nil: a value
	Crowd   bool  // a computation takes Compute for each that is under way

	HTTP bool // callers come over HTTP

	Replicas int // at most; 0: as many as were asked for
	Callers  int // on each, likewise
}

func scenarios() []Scenario {
	return []Scenario{coldHerd(), coldKeys(), hotKey(), deadHolder(), failing(), httpHerd()}
}

// known are all scenarios: those that run unless others are asked for, and the outages.
func known() []Scenario { return append(scenarios(), outages()...) }

// outlast is a lifetime that no trial outlives.
const outlast = 5 * time.Minute
