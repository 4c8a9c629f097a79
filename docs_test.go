package bellwether_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A promise whose test was renamed or has gone is one that nobody holds any more.
func TestTheTestsThatDocumentsNameExist(t *testing.T) {
	declared := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	read(t, "_test.go", func(_, text string) {
		for _, m := range declaration.FindAllStringSubmatch(text, -1) {
			declared[m[1]] = true
		}
	})
	mention := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`")
	named := 0
	read(t, ".md", func(name, text string) {
		for _, m := range mention.FindAllStringSubmatch(text, -1) {
			named++
			assert.True(t, declared[m[1]], "%s names %s, which isn't there", name, m[1])
		}
	})
	assert.Positive(t, named)
}

// read calls f with each file whose name ends so, of nested modules too.
func read(t *testing.T, suffix string, f func(name, text string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, suffix) {
			return err
		}
		text, err := os.ReadFile(name)
		f(name, string(text))
		return err
	}))
}
