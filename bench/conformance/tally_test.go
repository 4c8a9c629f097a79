package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tallyOf is the score of tests and results as the suite writes them.
func tallyOf(t *testing.T, tests, results string) tallied {
	t.Helper()
	var all []category
	require.NoError(t, json.Unmarshal([]byte(tests), &all))
	var got map[string]result
	require.NoError(t, json.Unmarshal([]byte(results), &got))
	return tally(all, got)
}

func TestATestThatDependsOnAFailedOneDoesNotPass(t *testing.T) {
	s := tallyOf(t, `[{"id": "c", "name": "C", "tests": [
		{"id": "far", "depends_on": ["near"]},
		{"id": "near", "kind": "optimal", "depends_on": ["first"]},
		{"id": "first", "kind": "optimal"},
		{"id": "other", "kind": "check"}]}]`,
		`{"first": ["Assertion", "not from cache"], "near": true, "far": true, "other": true}`)
	assert.Equal(t, count{behind: 1}, s.total["required"], "over two steps")
	assert.Equal(t, count{failed: 1, behind: 1}, s.total["optimal"])
	assert.Equal(t, count{passed: 1}, s.total["check"])
}

func TestWhatWentWrongBeforeThePointIsToldApart(t *testing.T) {
	s := tallyOf(t, `[{"id": "c", "name": "C", "tests": [{"id": "a"}, {"id": "b"}, {"id": "gone"}]}]`,
		`{"a": ["Setup", "status is 502"], "b": ["TypeError", "fetch failed"]}`)
	assert.Equal(t, count{setup: 1, failed: 1, untested: 1}, s.total["required"])
	assert.Equal(t, outcome{"a", "required", setup, "status is 502"}, s.open[0])
}

func TestTestsForBrowsersAreNotCounted(t *testing.T) {
	s := tallyOf(t, `[{"id": "c", "name": "C", "tests": [{"id": "a", "browser_only": true}, {"id": "b"}]}]`, `{"b": true}`)
	assert.Equal(t, 1, s.total["required"].all())
}

func TestTheScoreIsATableInTheOrderOfTheSuite(t *testing.T) {
	s := tallyOf(t, `[{"name": "Z", "tests": [{"id": "a"}, {"id": "b"}]}, {"name": "A", "tests": [{"id": "c", "kind": "check"}]}]`,
		`{"a": true, "b": ["Assertion", "why"], "c": true}`)
	var b strings.Builder
	require.NoError(t, s.write(&b))
	assert.Contains(t, b.String(), "| Z | 1 of 2 | | |\n| A | | | 1 of 1 |\n| **all** | 1 of 2 | | 1 of 1 |\n")
	assert.Contains(t, b.String(), "- b: failed. why\n")
}

func TestAScoreBelowWhatWasAskedForIsAShortfall(t *testing.T) {
	s := tallyOf(t, `[{"name": "C", "tests": [{"id": "a"}, {"id": "b"}, {"id": "c", "kind": "optimal"}]}]`,
		`{"a": true, "b": ["Assertion", "why"], "c": true}`)
	assert.NoError(t, s.atLeast(1, 1, 1))
	for _, asked := range [][3]int{{2, 1, 1}, {1, 2, 1}, {1, 1, 0}} {
		assert.ErrorAs(t, s.atLeast(asked[0], asked[1], asked[2]), new(shortfall), asked)
	}
}

func TestAResultThatTheSuiteNeverWritesIsAnError(t *testing.T) {
	for _, text := range []string{`1`, `"x"`, `["one"]`, `{}`} {
		assert.Error(t, json.Unmarshal([]byte(text), new(result)), text)
	}
}
