package main

import (
	"encoding/json"
	"io"
	"runtime"
)

// Report is all that a run found. The JSON names are stable.
type Report struct {
	Parameters   Parameters `json:"parameters"`
	GoVersion    string     `json:"go_version"`
	Platform     string     `json:"platform"`
	CPUs         int        `json:"cpus"`
	RedisVersion string     `json:"redis_version"`
	RedisStarted bool       `json:"redis_started"` // by this program, rather than given
	Counting     string     `json:"commands_counted"`
	Results      []Result   `json:"results"`
}

// Parameters is Params as a report shows it.
type Parameters struct {
	Replicas  int      `json:"replicas"`
	Callers   int      `json:"callers"` // per replica
	ComputeMS float64  `json:"compute_ms"`
	Keys      int      `json:"keys"`
	LeaseMS   float64  `json:"lease_ms"`
	Runs      int      `json:"runs"`
	Seed      uint64   `json:"seed"`
	Quick     bool     `json:"quick"`
	Scenarios []string `json:"scenarios"`
	Arms      []string `json:"arms"`
}

func newReport(p Params, s *Server) *Report {
	r := &Report{
		Parameters: Parameters{
			Replicas: p.Replicas, Callers: p.Callers, ComputeMS: millis(p.Compute), Keys: p.Keys,
			LeaseMS: millis(p.Lease), Runs: p.Runs, Seed: p.Seed, Quick: p.Quick,
		},
		GoVersion:    runtime.Version(),
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
		CPUs:         runtime.GOMAXPROCS(0),
		RedisVersion: s.Version,
		RedisStarted: s.own != nil,
		Counting:     counting,
		Results:      []Result{},
	}
	for _, s := range p.Scenarios {
		r.Parameters.Scenarios = append(r.Parameters.Scenarios, s.Name)
	}
	for _, a := range p.Arms {
		r.Parameters.Arms = append(r.Parameters.Arms, a.Name)
	}
	return r
}

func (r *Report) write(w io.Writer, asJSON bool) error {
	if !asJSON {
		return r.table(w)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
