package docs_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/example/docs"
)

// Whatever is asked for, it's a page or unknown, and nothing is opened that must stay out of sight.
func FuzzPackagePath(f *testing.F) {
	for _, seed := range []string{
		"text/plain", "text/plain/more", "", ".", "..", "../../etc/passwd", "/etc/passwd", "text/plain/internal/inside", "vendor",
		"text/..", "a\x00b", "text/plain/testdata", "..%2f", "\xff", "text\\plain", "-", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		html, err := docs.New(watched{small, t}).Package(t.Context(), path)
		switch {
		case err == nil:
			assert.True(t, docs.Valid(path))
			assert.NotEmpty(t, html)
		case path == "broken":
		default:
			assert.True(t, errors.Is(err, docs.ErrUnknown), "%q: %v", path, err)
			assert.Empty(t, html)
		}
	})
}
