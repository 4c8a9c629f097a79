package main

import (
	"time"
)

// Params is what a run was asked for.
type Params struct {
	Replicas int           // caches with a client and connections of their own
	Callers  int           // callers per replica
	Compute  time.Duration // how long one computation takes; scenarios may take a fraction
	Keys     int           // keys of the cold-keys scenario
	Lease    time.Duration // silence of a holder after which another may take over
	Runs     int           // times each arm goes through each scenario
	Seed     uint64        // of the order of keys and the pauses of callers

	Scenarios []Scenario
	Arms      []Arm

	Redis string // address of a server on this machine; empty: start one
	JSON  bool
	Quick bool
}

func defaultParams() Params {
	return Params{
		Replicas:  10,
		Callers:   100,
		Compute:   537 * time.Millisecond, // no multiple of a poll pause, which would flatter polling
		Keys:      1000,
		Lease:     2 * time.Second,
		Runs:      1,
		Seed:      1,
		Scenarios: scenarios(),
		Arms:      arms(),
	}
}

// quicken replaces what was not given explicitly by values that are done within seconds.
func (p *Params) quicken(given map[string]bool) {
	replace(given["replicas"], &p.Replicas, 3)
	replace(given["callers"], &p.Callers, 8)
	replace(given["compute"], &p.Compute, 137*time.Millisecond)
	replace(given["keys"], &p.Keys, 60)
	p.Lease = 500 * time.Millisecond
}

func replace[T any](given bool, dst *T, v T) {
	if !given {
		*dst = v
	}
}

// limit bounds one trial, whatever the arm does.
func (p *Params) limit() time.Duration { return 30*time.Second + 10*p.Compute }
