package middleware_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestThePageSaysWhatTheTableProves(t *testing.T) {
	page, err := os.ReadFile("../docs/http.md")
	require.NoError(t, err)
	var rows strings.Builder
	for _, r := range table {
		fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s |\n", r.situation, r.leader, r.waiter, r.elsewhere, r.later)
	}
	assert.True(t, strings.Contains(string(page), "\n|---|---|---|---|---|\n"+rows.String()+"\n"), "docs/http.md must have these rows:\n%s", rows.String())
}
