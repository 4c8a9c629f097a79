// Package docs renders the documentation of the Go standard library to HTML, from the toolchain's own source.
//
// Nothing is kept between two calls: each parses, sorts and prints everything again, which takes tens to hundreds of milliseconds.
// That makes it a good thing to put a cache in front of.
package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/build"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrUnknown is wrapped by the error for a package that isn't there.
var ErrUnknown = errors.New("docs: unknown package")

// Library is a tree of package sources. It may be used by many goroutines.
type Library struct {
	tree  fs.FS
	build build.Context
	close func() error
}

// Open returns the library of the toolchain at goroot. It reads below goroot/src only: no path and no symbolic link leads out of it.
func Open(goroot string) (*Library, error) {
	root, err := os.OpenRoot(filepath.Join(goroot, "src"))
	if err != nil {
		return nil, fmt.Errorf("docs: open the library: %w", err)
	}
	l := New(root.FS())
	l.close = root.Close
	return l, nil
}

// New returns the library whose packages are the folders of tree.
func New(tree fs.FS) *Library {
	l := &Library{tree: tree, build: build.Default, close: func() error { return nil }}
	l.build.OpenFile = func(name string) (io.ReadCloser, error) { return tree.Open(filepath.ToSlash(name)) }
	return l
}

// Close lets go of the tree.
func (l *Library) Close() error { return l.close() }

// Package renders the page of one package, named by its import path. A package that isn't there is an ErrUnknown.
// Between two files it looks whether ctx has ended.
func (l *Library) Package(ctx context.Context, path string) ([]byte, error) {
	src, err := l.read(ctx, path)
	if err != nil {
		return nil, err
	}
	page, err := newPage(src)
	if err != nil {
		return nil, err
	}
	return render("package.html", page)
}

// Index renders the page that lists all packages, with the first sentence of each.
// Between two packages it looks whether ctx has ended.
func (l *Library) Index(ctx context.Context) ([]byte, error) {
	entries, err := l.list(ctx)
	if err != nil {
		return nil, err
	}
	return render("index.html", entries)
}

func render(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, name, data); err != nil {
		return nil, fmt.Errorf("docs: render %s: %w", name, err)
	}
	return out.Bytes(), nil
}
