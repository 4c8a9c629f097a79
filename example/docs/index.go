package docs

import (
	"context"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
)

// entry is one line of the index.
type entry struct{ Path, Synopsis string }

// list walks the tree; a folder without Go files is no package.
func (l *Library) list(ctx context.Context) ([]entry, error) {
	var entries []entry
	err := fs.WalkDir(l.tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || name == "." {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !Valid(name) {
			return fs.SkipDir
		}
		synopsis, found, err := l.synopsis(name)
		if found {
			entries = append(entries, entry{Path: name, Synopsis: synopsis})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("docs: list the packages: %w", err)
	}
	return entries, nil
}

// synopsis is the first sentence of the package comment, from the first file that has one.
func (l *Library) synopsis(folder string) (text string, found bool, err error) {
	files, err := fs.ReadDir(l.tree, folder)
	if err != nil {
		return "", false, err
	}
	for _, f := range files {
		if !isSource(f.Name()) || isTest(f.Name()) {
			continue
		}
		match, err := l.build.MatchFile(folder, f.Name())
		if err != nil {
			return "", found, err
		}
		if !match {
			continue
		}
		found = true
		if text, err = l.packageComment(path.Join(folder, f.Name())); text != "" || err != nil {
			return text, found, err
		}
	}
	return "", found, nil
}

func (l *Library) packageComment(name string) (string, error) {
	text, err := fs.ReadFile(l.tree, name)
	if err != nil {
		return "", err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		return "", err
	}
	return new(doc.Package).Synopsis(file.Doc.Text()), nil
}
