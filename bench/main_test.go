package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

// TestMain lets the test binary be the child process of the dead-holder scenario.
func TestMain(m *testing.M) {
	if holder, ok := holderFromEnv(); ok {
		os.Exit(holder.run())
	}
	os.Exit(m.Run())
}

// bench runs the program in this process and returns its exit code and what it printed.
func bench(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	code = run(ctx, args, &out, &errOut)
	return code, out.String(), errOut.String()
}

func TestEveryArmGoesThroughEveryScenario(t *testing.T) {
	server := redistest.Start(t)
	code, out, errOut := bench(t.Context(), "-redis", server.Addr, "-quick", "-json")
	require.Equal(t, 0, code, errOut)
	assert.Empty(t, errOut, "nothing but a progress bar, and only on a terminal")

	var report Report
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&report))
	assert.Equal(t, "7", report.RedisVersion[:1])
	assert.False(t, report.RedisStarted)

	var i int
	for _, s := range scenarios() {
		for _, a := range arms() {
			t.Run(s.Name+"/"+a.Name, func(t *testing.T) {
				require.Greater(t, len(report.Results), i)
				checkResult(t, report.Results[i], s.Name, a.Name)
			})
			i++
		}
	}
	assert.Len(t, report.Results, i)
	for key, left := range redistest.Keys(t, redistest.Client(t, server)) {
		assert.Positive(t, left, "%q has no TTL", key)
	}
}

// checkResult checks what holds for every arm, and what only Bellwether promises.
func checkResult(t *testing.T, r Result, scenario, arm string) {
	assert.Equal(t, []string{scenario, arm}, []string{r.Scenario, r.Arm})
	assert.Positive(t, r.Calls)
	assert.Equal(t, r.Calls, r.Served+r.Errors)
	assert.Equal(t, r.Calls, r.Latency.Samples)
	assert.LessOrEqual(t, r.Latency.P50, r.Latency.P99)
	assert.LessOrEqual(t, r.Latency.P99, r.Latency.Max)
	assert.Positive(t, r.Computations)
	assert.Positive(t, r.Commands.Total)
	if scenario == "failing" {
		assert.Zero(t, r.Served)
	} else {
		assert.Zero(t, r.Errors, "%v", r.Kinds)
	}
	if arm != "bellwether" {
		return
	}
	switch scenario {
	case "cold-herd", "dead-holder", "failing", "http-herd":
		assert.Equal(t, 1, r.Computations, "once in the whole fleet")
	case "cold-keys":
		// On a machine too busy for Redis to answer within the library's budget it computes rather than waits.
		assert.LessOrEqual(t, r.Computations, r.Calls/(3*callersPerKey)+r.Failed, "once per key in the whole fleet")
	case "hot-key":
		assert.LessOrEqual(t, r.Computations, hotLifetimes+1, "once per lifetime, and once at first")
		assert.Equal(t, 1, r.Peak)
	}
}

// An outage is an error for nobody, and few computations, behind Bellwether; and leaves the arms with a table all the same.
func TestAnOutageIsReplayed(t *testing.T) {
	redistest.Start(t) // skips where the program couldn't start one
	code, out, errOut := bench(t.Context(), "-quick", "-json", "-arms", "singleflight,bellwether", "-scenarios", "full")
	require.Equal(t, 0, code, errOut)
	var report Report
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	require.Len(t, report.Results, 2)
	assert.Positive(t, report.Results[0].Errors)
	ours := report.Results[1]
	assert.Zero(t, ours.Errors, "%v", ours.Kinds)
	for _, note := range []string{"warm_in_time_percent", "cold_in_time_percent", "warm_computations_per_replica", "back_ms"} {
		assert.Contains(t, ours.Notes, note)
	}
	assert.LessOrEqual(t, ours.Notes["cold_computations_per_replica"], 4.0)
}

// The names of the JSON are for programs: they stay.
func TestTheNamesOfTheJSON(t *testing.T) {
	server := redistest.Start(t)
	_, out, errOut := bench(t.Context(), "-redis", server.Addr, "-quick", "-json", "-arms", "naive", "-scenarios", "failing")
	var report map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &report), errOut)
	assert.ElementsMatch(t, strings.Fields(
		"parameters go_version platform cpus redis_version redis_started commands_counted results"), fields(report))
	assert.ElementsMatch(t, strings.Fields(
		"replicas callers compute_ms keys lease_ms runs seed quick scenarios arms"), fields(report["parameters"]))

	result := report["results"].([]any)[0].(map[string]any)
	assert.ElementsMatch(t, strings.Fields(
		"scenario arm run calls served errors error_kinds computations peak_computations latency_ms wake_ms commands failed_steps notes"), fields(result))
	assert.ElementsMatch(t, strings.Fields("samples p50 p99 max"), fields(result["latency_ms"]))
	assert.ElementsMatch(t, strings.Fields("total by_name"), fields(result["commands"]))
	assert.ElementsMatch(t, strings.Fields("all_told_ms"), fields(result["notes"]))
}

func fields(object any) (names []string) {
	for name := range object.(map[string]any) {
		names = append(names, name)
	}
	return names
}

func TestTheTableIsGroupedByScenario(t *testing.T) {
	redistest.Start(t) // skips where the program couldn't start one
	code, out, errOut := bench(t.Context(), "-quick", "-arms", "naive,singleflight", "-scenarios", "cold-herd,failing", "-runs", "2", "-compute", "7ms")
	require.Equal(t, 0, code, errOut)
	assert.Contains(t, out, "3 replicas × 8 callers, compute 7 ms, seed 1")
	assert.Contains(t, out, "median of 2 runs")
	herd, rest, _ := strings.Cut(out, "\nfailing: ")
	assert.Regexp(t, `(?s)cold-herd: all .*\n  naive +24 +0 +24 .*\n  singleflight +24 +0 +3 `, herd)
	assert.Regexp(t, `(?s)\n  naive +24 +24 +24 .*\n  singleflight +24 +24 +3 .*callers told after`, rest)
	assert.NotContains(t, out, "hot-key")
}

func TestAnInterruptedRunPrintsWhatItHas(t *testing.T) {
	server := redistest.Start(t)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	code, out, errOut := bench(ctx, "-redis", server.Addr, "-quick", "-json")
	assert.Equal(t, 1, code)
	assert.Contains(t, errOut, "context canceled")
	assert.Empty(t, out, "it had nothing yet")
}
