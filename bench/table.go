package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

var columns = []string{
	"arm", "calls", "errors", "computed", "at once", "p50", "p99", "max", "wake p50", "p99", "max", "commands", "",
}

func (r *Report) table(w io.Writer) error {
	var b strings.Builder
	p := r.Parameters
	fmt.Fprintf(&b, "%d replicas × %d callers, compute %v ms, seed %d; %s, %s, %d CPUs, Redis %s. Times in ms.\n",
		p.Replicas, p.Callers, p.ComputeMS, p.Seed, r.GoVersion, r.Platform, r.CPUs, r.RedisVersion)
	if p.Runs > 1 {
		fmt.Fprintf(&b, "Each row is the median of %d runs, by the last caller's latency.\n", p.Runs)
	}
	for _, s := range known() {
		rows := [][]string{columns}
		for _, arm := range p.Arms {
			if res, ok := r.median(s.Name, arm); ok {
				rows = append(rows, res.cells())
			}
		}
		if len(rows) > 1 {
			fmt.Fprintf(&b, "\n%s: %s\n", s.Name, s.About)
			align(&b, rows)
		}
	}
	fmt.Fprintf(&b, "\nwake: from the end of a computation to the return of each caller who waited for it.\ncommands: %s.\n", r.Counting)
	_, err := io.WriteString(w, b.String())
	return err
}

// median is the run whose slowest call is the median of the slowest calls.
func (r *Report) median(scenario, arm string) (Result, bool) {
	var runs []Result
	for _, res := range r.Results {
		if res.Scenario == scenario && res.Arm == arm {
			runs = append(runs, res)
		}
	}
	if len(runs) == 0 {
		return Result{}, false
	}
	slices.SortFunc(runs, func(a, b Result) int { return cmp.Compare(a.Latency.Max, b.Latency.Max) })
	return runs[(len(runs)-1)/2], true
}

func (r Result) cells() []string {
	cells := []string{r.Arm}
	for _, n := range []int{r.Calls, r.Errors, r.Computations, r.Peak} {
		cells = append(cells, strconv.Itoa(n))
	}
	for _, s := range []Spread{r.Latency, r.Wake} {
		for _, ms := range []float64{s.P50, s.P99, s.Max} {
			if s.Samples == 0 {
				cells = append(cells, "–")
			} else {
				cells = append(cells, figure(time.Duration(ms*float64(time.Millisecond))))
			}
		}
	}
	return append(cells, strconv.Itoa(r.Commands.Total), strings.Join(r.texts, ", "))
}

// figure is a duration in milliseconds, with as many digits as mean something.
func figure(d time.Duration) string {
	ms := millis(d)
	if ms < 10 {
		return strconv.FormatFloat(ms, 'f', 2, 64)
	}
	return strconv.FormatFloat(ms, 'f', 0, 64)
}

// align writes rows in columns: the first and the last to the left, figures to the right.
func align(b *strings.Builder, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 || i == len(row)-1 {
				pad, cell = cell, pad
			}
			line.WriteString("  " + pad + cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
