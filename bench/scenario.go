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
}

// Plan is what a scenario asks of the arms and of the origin.
type Plan struct {
	Terms   Terms
	Compute time.Duration
	Fail    error // what each computation ends in; nil: a value
}

func scenarios() []Scenario {
	return []Scenario{coldHerd(), coldKeys(), hotKey(), deadHolder(), failing()}
}

// outlast is a lifetime that no trial outlives.
const outlast = 5 * time.Minute
