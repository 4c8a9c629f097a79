package main

import (
	"fmt"
	"slices"
	"time"
)

// Result is what one trial came to. The JSON names are stable.
type Result struct {
	Scenario string `json:"scenario"`
	Arm      string `json:"arm"`
	Run      int    `json:"run"`

	Calls  int            `json:"calls"`
	Served int            `json:"served"`
	Errors int            `json:"errors"`
	Kinds  map[string]int `json:"error_kinds,omitempty"` // by text

	Computations int `json:"computations"`
	Peak         int `json:"peak_computations"` // at one time

	Latency  Spread             `json:"latency_ms"` // of each call
	Wake     Spread             `json:"wake_ms"`    // from the end of a computation to the return of each caller who waited for it
	Commands Commands           `json:"commands"`
	Failed   int                `json:"failed_steps"` // Redis steps that failed or took too long, unnoticed by callers
	Notes    map[string]float64 `json:"notes"`

	texts []string
}

// Spread is how a set of durations is spread, in milliseconds.
type Spread struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

func (t *Trial) result(scenario string, run int) Result {
	r := Result{Scenario: scenario, Arm: t.arm.Name, Run: run, Commands: t.fleet.Meter.commands(), Notes: map[string]float64{}}
	r.Computations, r.Peak = t.origin.counts()
	var latency, wake []time.Duration
	for _, c := range t.calls.list() {
		r.count(c)
		latency = append(latency, c.End-c.Start)
		if end, ok := t.origin.firstEnd(c.Key, c.Start, c.End); ok {
			wake = append(wake, c.End-end)
		}
	}
	r.Latency, r.Wake = spread(latency), spread(wake)
	for _, n := range t.notes {
		r.Notes[n.Name] = n.Value
		r.texts = append(r.texts, n.Text)
	}
	if r.Failed = t.fleet.FailedSteps; r.Failed > 0 {
		r.texts = append(r.texts, fmt.Sprintf("%d Redis steps failed or took too long", r.Failed))
	}
	return r
}

func (r *Result) count(c Call) {
	r.Calls++
	if c.Err == nil {
		r.Served++
		return
	}
	r.Errors++
	if r.Kinds == nil {
		r.Kinds = map[string]int{}
	}
	r.Kinds[c.Err.Error()]++
}

// spread sorts ds.
func spread(ds []time.Duration) Spread {
	if len(ds) == 0 {
		return Spread{}
	}
	slices.Sort(ds)
	return Spread{
		Samples: len(ds),
		P50:     millis(percentile(ds, 50)),
		P99:     millis(percentile(ds, 99)),
		Max:     millis(ds[len(ds)-1]),
	}
}

// percentile is the nearest rank: the least of the sorted values that p percent of them don't exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}

func millis(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
