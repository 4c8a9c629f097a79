package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/docs"
)

func TestToolchain(t *testing.T) {
	library := toolchain(t)
	for path, want := range map[string][]string{
		"net/http":  {`<section id="Client.Do">`, `<summary>Example`},
		"go/types":  {`<section id="Checker.Files">`},
		"builtin":   {`<section id="append">`},
		"unsafe":    {`<section id="Pointer">`},
		"math/rand": {`<section id="NewZipf">`, `<a href="/pkg/math/rand/v2">`},
	} {
		page := render(t, library, path)
		for _, part := range want {
			assert.True(t, strings.Contains(page, part), "%s: no %s", path, part) // assert.Contains would print the page
		}
	}
}

func TestIndex(t *testing.T) {
	html, err := toolchain(t).Index(t.Context())
	require.NoError(t, err)
	page := string(html)
	row := `<a href="/pkg/net/http">net/http</a></td><td>Package http provides HTTP client and server implementations.`
	assert.True(t, strings.Contains(page, row))
	for _, hidden := range []string{"internal", "vendor", "testdata", `"/pkg/cmd`, `"/pkg/go"`} {
		assert.False(t, strings.Contains(page, hidden), hidden)
	}
}

func TestOpenStaysInside(t *testing.T) {
	goroot := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(goroot, "src"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(goroot, "outside"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(goroot, "outside", "o.go"), []byte("package outside"), 0o644))
	if err := os.Symlink(filepath.Join("..", "outside"), filepath.Join(goroot, "src", "link")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	library, err := docs.Open(goroot)
	require.NoError(t, err)
	defer library.Close()
	html, err := library.Package(t.Context(), "link")
	assert.Error(t, err)
	assert.Empty(t, html)
}

func TestOpenNeedsATree(t *testing.T) {
	_, err := docs.Open(t.TempDir())
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func BenchmarkPackage(b *testing.B) {
	goroot, err := docs.GOROOT(b.Context())
	require.NoError(b, err)
	library, err := docs.Open(goroot)
	require.NoError(b, err)
	defer library.Close()
	for _, path := range []string{"errors", "os", "net/http"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				_, err := library.Package(b.Context(), path)
				require.NoError(b, err)
			}
		})
	}
}
