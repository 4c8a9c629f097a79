package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgtest"
)

func TestMain(m *testing.M) {
	ownerMain()
	pgtest.Main(m, nil)
}

func TestALateWriteOfAPausedOwnerChangesNothing(t *testing.T) {
	r, err := pause(t.Context(), task{URL: pgtest.Shared(t).URL(), Report: t.Name(), TTL: ttl, Fenced: true}, t.Output())
	require.NoError(t, err)
	assert.Greater(t, r.second, r.first)
	assert.False(t, r.late.Saved, "its fence is lower than the one that the row has seen")
	assert.True(t, r.late.Lost, "and it has been told that its lease is lost")
	assert.Equal(t, "by its successor", r.content)
}

// The control: with nothing but the lease, the late write wins.
func TestWithoutTheFenceALateWriteReplacesTheSuccessors(t *testing.T) {
	r, err := pause(t.Context(), task{URL: pgtest.Shared(t).URL(), Report: t.Name(), TTL: ttl}, t.Output())
	require.NoError(t, err)
	assert.True(t, r.late.Saved)
	assert.True(t, r.late.Lost)
	assert.Equal(t, "by the paused owner", r.content)
}

func TestTheExampleRunsAndLeavesNothing(t *testing.T) {
	var out strings.Builder
	url := pgtest.Shared(t).URL()
	require.NoError(t, run(t.Context(), url, &out))
	assert.Contains(t, out.String(), `Rows changed: 0. The report is now "by its successor"`)
	var tables int
	require.NoError(t, pgtest.Pool(t, url).QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'bellwether_example%'").Scan(&tables))
	assert.Zero(t, tables)
	assert.Empty(t, os.Getenv(inOwner))
}
