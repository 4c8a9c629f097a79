package main

import (
	"slices"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

// BenchmarkHerd sends 10 × 100 callers to a cold key, again and again. wake-ms is the median over the herds of the last caller's
// return, from the end of the first computation.
func BenchmarkHerd(b *testing.B) {
	p := defaultParams()
	p.Compute = 57 * time.Millisecond
	benchTrials(b, p, coldHerd(), func(b *testing.B, results []Result) {
		b.ReportMetric(median(results, func(r Result) float64 { return r.Wake.Max }), "wake-ms")
	})
}

// BenchmarkColdKeys sends 4 × 2 callers to each of 1,000 cold keys.
func BenchmarkColdKeys(b *testing.B) {
	p := defaultParams()
	p.Replicas, p.Callers = 4, 2
	benchTrials(b, p, coldKeys(), func(*testing.B, []Result) {})
}

// benchTrials runs one trial per iteration. ns/op is a whole trial, with the opening of its connections.
func benchTrials(b *testing.B, p Params, s Scenario, more func(*testing.B, []Result)) {
	server := redistest.Start(b)
	for _, arm := range arms() {
		b.Run("arm="+arm.Name, func(b *testing.B) {
			var results []Result
			for b.Loop() {
				r, err := runTrial(b.Context(), p, server.Addr, s, arm, len(results)+1)
				if err != nil {
					b.Fatal(err)
				}
				results = append(results, r)
			}
			keys := 1.0
			if s.Name == "cold-keys" {
				keys = float64(p.Keys)
			}
			b.ReportMetric(median(results, func(r Result) float64 { return float64(r.Computations) / keys }), "computations/key")
			b.ReportMetric(median(results, func(r Result) float64 { return float64(r.Commands.Total) / keys }), "commands/key")
			more(b, results)
		})
	}
}

func median(results []Result, of func(Result) float64) float64 {
	vs := make([]float64, 0, len(results))
	for _, r := range results {
		vs = append(vs, of(r))
	}
	slices.Sort(vs)
	return vs[len(vs)/2]
}
