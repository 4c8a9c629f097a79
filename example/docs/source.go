package docs

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
)

// source is a package as it was parsed.
type source struct {
	path    string
	set     *token.FileSet
	doc     *doc.Package
	files   []string // of the package itself, without its tests
	folders []string // below it, that may hold packages
}

func (l *Library) read(ctx context.Context, name string) (*source, error) {
	folder, err := l.folder(name)
	if err != nil {
		return nil, err
	}
	src := &source{path: name, set: token.NewFileSet()}
	var files []*ast.File
	for _, entry := range folder {
		if entry.IsDir() {
			if !hidden(entry.Name()) {
				src.folders = append(src.folders, path.Join(name, entry.Name()))
			}
			continue
		}
		file, err := l.file(ctx, src, entry.Name())
		if err != nil {
			return nil, err
		}
		if file != nil {
			files = append(files, file)
		}
	}
	return src, src.sort(files)
}

// folder lists the folder of a package; every way of not being there is an ErrUnknown.
func (l *Library) folder(name string) ([]fs.DirEntry, error) {
	if !Valid(name) {
		return nil, fmt.Errorf("%w: %.*q", ErrUnknown, maxPath, name)
	}
	info, err := fs.Stat(l.tree, name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	folder, err := fs.ReadDir(l.tree, name)
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	return folder, nil
}

// file parses one file of src. It is nil for a file that this platform leaves out.
func (l *Library) file(ctx context.Context, src *source, name string) (*ast.File, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("docs: %s: %w", src.path, context.Cause(ctx))
	}
	if !isSource(name) {
		return nil, nil
	}
	match, err := l.build.MatchFile(src.path, name)
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	if !match {
		return nil, nil
	}
	text, err := fs.ReadFile(l.tree, path.Join(src.path, name))
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	file, err := parser.ParseFile(src.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("docs: %s: %w", src.path, err)
	}
	return file, nil
}

// sort lets go/doc put the declarations in order, with the examples from the tests.
func (s *source) sort(files []*ast.File) error {
	for _, file := range files {
		if name := s.set.Position(file.Package).Filename; !isTest(name) {
			s.files = append(s.files, name)
		}
	}
	if len(s.files) == 0 {
		return fmt.Errorf("%w: %q holds no Go files", ErrUnknown, s.path)
	}
	var mode doc.Mode
	if s.path == "builtin" {
		mode = doc.AllDecls // what it documents isn't exported
	}
	var err error
	if s.doc, err = doc.NewFromFiles(s.set, files, s.path, mode); err != nil {
		return fmt.Errorf("docs: %s: %w", s.path, err)
	}
	return nil
}
