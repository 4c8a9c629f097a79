package docs

import (
	"io/fs"
	"path"
	"strings"
)

const maxPath = 128 // longer than any import path of the standard library

// Valid reports whether path could be the import path of a package that has a page here. It reads no file.
func Valid(path string) bool {
	if path == "." || len(path) > maxPath || !fs.ValidPath(path) {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if hidden(part) || strings.ContainsFunc(part, unusual) {
			return false
		}
	}
	return true
}

// hidden reports whether a folder of this name, and all that is below it, stays out of the documentation.
func hidden(folder string) bool {
	switch folder {
	case "internal", "vendor", "testdata", "cmd":
		return true
	}
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_")
}

func unusual(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("._-", r)
}

// isSource reports whether a file of this name may belong to a package.
func isSource(name string) bool {
	return path.Ext(name) == ".go" && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "_")
}
