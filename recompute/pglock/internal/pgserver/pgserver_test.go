package pgserver_test

import (
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgserver"
)

// start is pgtest.Start without pgtest, which stands on this package.
func start(t *testing.T, args ...string) *pgserver.Server {
	t.Helper()
	s, err := pgserver.Start(args...)
	if errors.Is(err, pgserver.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	return s
}

func ask(t *testing.T, s *pgserver.Server, sql string) (answer string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	require.NoError(t, err)
	defer conn.Close(t.Context())
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&answer))
	return answer
}

func TestAServerAnswersKeepsWhatItHasInACrashAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	require.NoError(t, os.Chmod(os.Getenv("TMPDIR")+"/..", 0o755)) // the server may run as somebody else
	s := start(t, "max_connections=7")
	conn, err := pgx.Connect(t.Context(), s.URL())
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 'kept' AS what")
	require.NoError(t, err)
	assert.Equal(t, "7", ask(t, s, "SHOW max_connections"))
	require.NoError(t, s.Crash())
	require.Error(t, conn.Ping(t.Context()))
	require.NoError(t, s.Restart())
	assert.Equal(t, "kept", ask(t, s, "SELECT what FROM kept"))
	require.NoError(t, s.Stop())
	files, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	assert.Empty(t, files)
}

func TestASettingThatIsWrongIsInItsLastWords(t *testing.T) {
	start(t) // skips where there is no PostgreSQL
	_, err := pgserver.Start("no_such_setting=1")
	require.ErrorContains(t, err, "ended before it answered")
	require.ErrorContains(t, err, "no_such_setting")
}
