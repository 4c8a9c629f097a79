package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// verdict is what a result means once the tests that it depends on are taken into account.
type verdict string

const (
	passed   verdict = "passed"
	failed   verdict = "failed"
	setup    verdict = "not set up"         // what comes before the point of the test went wrong already
	behind   verdict = "behind another one" // it depends on a test that didn't pass
	untested verdict = "not run"
)

var kinds = []string{"required", "optimal", "check"}

// count is how many tests of a kind there are, and how they went.
type count map[verdict]int

func (c count) all() (n int) {
	for _, of := range c {
		n += of
	}
	return n
}

// outcome is one test that didn't pass.
type outcome struct {
	test, kind string
	verdict    verdict
	text       string
}

// tallied is the score: by category and kind, in the suite's order.
type tallied struct {
	categories []string
	counts     map[string]map[string]count // by name of the category, then kind
	total      map[string]count
	open       []outcome
}

// tally counts what a proxy is asked: tests for browsers aren't for it.
func tally(categories []category, results map[string]result) tallied {
	t := tallied{counts: map[string]map[string]count{}, total: map[string]count{}}
	tests := map[string]test{}
	for _, c := range categories {
		for _, one := range c.Tests {
			tests[one.ID] = one
		}
	}
	for _, c := range categories {
		for _, one := range c.Tests {
			if !one.BrowserOnly {
				t.add(c.Name, kindOf(one), one.ID, judge(tests, results, one.ID), results[one.ID].text)
			}
		}
	}
	return t
}

func kindOf(t test) string {
	if t.Kind == "" {
		return kinds[0]
	}
	return t.Kind
}

// judge honours what a test depends on, and what that depends on.
func judge(tests map[string]test, results map[string]result, id string) verdict {
	for _, on := range tests[id].DependsOn {
		if judge(tests, results, on) != passed {
			return behind
		}
	}
	switch r, ok := results[id]; {
	case !ok:
		return untested
	case r.passed:
		return passed
	case r.kind == "Setup":
		return setup
	default:
		return failed
	}
}

func (t *tallied) add(category, kind, id string, v verdict, text string) {
	if !slices.Contains(t.categories, category) {
		t.categories = append(t.categories, category)
		t.counts[category] = map[string]count{}
	}
	for _, counts := range []map[string]count{t.counts[category], t.total} {
		if counts[kind] == nil {
			counts[kind] = count{}
		}
		counts[kind][v]++
	}
	if v != passed {
		t.open = append(t.open, outcome{id, kind, v, text})
	}
}

// write prints the score as a table in Markdown, and then what didn't pass.
func (t tallied) write(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| category | required | optimal | check: yes |\n|---|---|---|---|\n")
	for _, name := range t.categories {
		row(&b, name, t.counts[name])
	}
	row(&b, "**all**", t.total)
	for _, kind := range kinds {
		fmt.Fprintf(&b, "\n%s: %s\n", kind, details(t.total[kind]))
		for _, o := range t.open {
			if o.kind == kind {
				fmt.Fprintf(&b, "- %s: %s. %s\n", o.test, o.verdict, o.text)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func row(b *strings.Builder, name string, counts map[string]count) {
	fmt.Fprintf(b, "| %s |", name)
	for _, kind := range kinds {
		if n := counts[kind].all(); n > 0 {
			fmt.Fprintf(b, " %d of %d", counts[kind][passed], n)
		}
		b.WriteString(" |")
	}
	b.WriteString("\n")
}

func details(c count) string {
	var parts []string
	for _, v := range []verdict{passed, failed, setup, behind, untested} {
		parts = append(parts, fmt.Sprintf("%d %s", c[v], v))
	}
	return strings.Join(parts, ", ")
}

// shortfall is a score that is less than was asked for.
type shortfall string

func (s shortfall) Error() string { return string(s) }

// atLeast is a shortfall unless so many tests pass, and no more required ones fail.
func (t tallied) atLeast(required, optimal, failing int) error {
	got, fails := t.total["required"], t.total["required"][failed]+t.total["required"][setup]
	switch {
	case got[passed] < required:
		return shortfall(fmt.Sprintf("%d required tests passed, must be at least %d", got[passed], required))
	case t.total["optimal"][passed] < optimal:
		return shortfall(fmt.Sprintf("%d optimal tests passed, must be at least %d", t.total["optimal"][passed], optimal))
	case fails > failing:
		return shortfall(fmt.Sprintf("%d required tests failed, must be at most %d", fails, failing))
	}
	return nil
}
