// Package bellwether_test states the architecture as data and checks the code against it.
package bellwether_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/bellwether-cache/bellwether"

	goRedis      = "github.com/redis/go-redis/v9"
	msgpack      = "github.com/vmihailenco/msgpack/v5"
	singleflight = "golang.org/x/sync/singleflight"
	gobreaker    = "github.com/sony/gobreaker/v2"
	otter        = "github.com/maypok86/otter/v2"
	httpsfv      = "github.com/dunglas/httpsfv"
	chi          = "github.com/go-chi/chi/v5"
	pgx          = "github.com/jackc/pgx/v5"
	testify      = "github.com/stretchr/testify"
	porcupine    = "github.com/anishathalye/porcupine"
	goleak       = "go.uber.org/goleak"
)

// row is what a library package may do. Any may import the standard library.
type row struct {
	floor   int
	says    string   // the first sentence of its doc, after "Package x"; "" leaves the wording free
	ours    []string // packages of this module that it may import: lower floors only
	others  []string // third-party packages that it is the door of
	suite   bool     // a contract as a test that others run: may sleep and start goroutines, as tests do
	module  bool     // a module of its own, with programs and support of its own, so that few get its dependencies
	planned bool     // isn't there yet
}

// floors has every package but the programs (example/…, bench/…: floor 3, they only wire) and what tests stand on (internal/…).
var floors = map[string]row{
	"middleware": {floor: 2, says: "puts a cache in front of HTTP handlers.",
		ours: []string{"cache", "recompute", "stale"}, others: []string{httpsfv, chi}},
	"cache/redisstore": {floor: 2, says: "keeps entries in a Redis server.",
		ours: []string{"cache", "recompute", "recompute/redislock"}, others: []string{goRedis}},
	"cache/cachetest": {floor: 2, suite: true,
		ours: []string{"cache", "recompute", "stale"}, others: []string{testify}},

	"cache": {floor: 1, says: "answers from a store and recomputes what is missing.",
		ours: []string{"recompute", "stale"}, others: []string{msgpack, otter}},
	"recompute/redislock": {floor: 1, says: "grants leases from a Redis server.",
		ours: []string{"recompute"}, others: []string{goRedis, gobreaker}},
	"recompute/pglock": {floor: 1, says: "grants leases from a PostgreSQL server.", module: true,
		ours: []string{"recompute"}, others: []string{pgx}},
	"recompute/recomputetest": {floor: 1, suite: true,
		ours: []string{"recompute"}, others: []string{testify}},

	"recompute": {floor: 0, says: "makes one caller do the work that many want done.",
		others: []string{singleflight}},
	"stale": {floor: 0, says: "says how long a computed value stays useful."},
}

// clientsOf has the package of this module that what tests stand on is a client of; the rest knows none.
var clientsOf = map[string]string{"internal/traffic": "cache"}

const (
	goroutines  = "recompute" // the only package that starts any
	longestFile = 300         // lines, tests aside
)

func TestTheTableItselfKeepsTheFloors(t *testing.T) {
	doors := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(floors)) {
		r := floors[name]
		for _, below := range r.ours {
			require.Contains(t, floors, below, name)
			assert.Less(t, floors[below].floor, r.floor, "%s imports %s: imports go down only", name, below)
		}
		for _, other := range r.others {
			doors[other] = append(doors[other], name)
		}
	}
	assert.Equal(t, map[string][]string{ // each third-party package has one door; go-redis has two, and testify is for suites
		goRedis:      {"cache/redisstore", "recompute/redislock"},
		msgpack:      {"cache"},
		singleflight: {"recompute"},
		gobreaker:    {"recompute/redislock"},
		otter:        {"cache"},
		httpsfv:      {"middleware"},
		chi:          {"middleware"},
		pgx:          {"recompute/pglock"},
		testify:      {"cache/cachetest", "recompute/recomputetest"},
	}, doors)
}

func TestEveryPackageIsInTheTable(t *testing.T) {
	found := packages(t)
	for name := range found {
		if _, known := floors[name]; !known && !program(name) && !support(name) {
			t.Errorf("%s is new: give it a row in floors, or a place under a program", name)
		}
	}
	for name, r := range floors {
		switch _, is := found[name]; {
		case is && r.planned:
			t.Errorf("%s is there: no longer planned", name)
		case !is && !r.planned:
			t.Errorf("%s isn't there: take its row out of floors, or mark it planned", name)
		}
	}
}

func TestImportsGoDownOnly(t *testing.T) {
	for name, files := range packages(t) {
		for _, f := range files {
			for _, spec := range f.Imports {
				if imported := strings.Trim(spec.Path.Value, "`\""); !allowed(name, imported) {
					t.Errorf("%s: %s may not import %s: see its row in floors", f.at(spec), name, imported)
				}
			}
		}
	}
}

func allowed(name, imported string) bool {
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	first, _, _ := strings.Cut(imported, "/")
	within := func(other string) bool { return imported == other || strings.HasPrefix(imported, other+"/") }
	switch r := floors[name]; {
	case !strings.Contains(first, "."): // the standard library
		return true
	case program(name):
		return true
	case support(name):
		return isOurs && support(ours) || ours == clientsOf[name] || within(goRedis) || within(pgx) || within(testify) || within(porcupine) || within(goleak)
	case isOurs:
		return slices.Contains(r.ours, ours)
	default:
		return slices.ContainsFunc(r.others, within)
	}
}

func TestEveryPackageSaysWhatItDoes(t *testing.T) {
	for name, files := range packages(t) {
		docs := slices.DeleteFunc(slices.Clone(files), func(f file) bool { return f.Doc == nil })
		if len(docs) != 1 {
			t.Errorf("%s has %d package docs, and needs one", name, len(docs))
			continue
		}
		sentence := new(doc.Package).Synopsis(docs[0].Doc.Text())
		want := "Package " + docs[0].Name.Name + " " + floors[name].says
		if docs[0].Name.Name != "main" && sentence != want && (floors[name].says != "" || !strings.HasPrefix(sentence, want)) {
			t.Errorf("%s begins its package doc with %q, and should with its line in the architecture: %q", docs[0].name, sentence, want)
		}
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for _, files := range library(t) {
		for _, f := range files {
			for _, d := range f.Decls {
				for _, id := range undocumented(d) {
					if id.IsExported() {
						t.Errorf("%s: %s has no doc", f.at(id), id.Name)
					}
				}
			}
		}
	}
}

// undocumented returns what a declaration declares without a comment. In a group of values, a comment is for all that follow it.
func undocumented(decl ast.Decl) (names []*ast.Ident) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		obvious := []string{"Error", "Is", "Unwrap", "String"} // their interfaces say it
		hidden := d.Recv != nil && (!ast.IsExported(receiver(d)) || slices.Contains(obvious, d.Name.Name))
		if d.Doc == nil && !hidden {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		documented := d.Doc != nil
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if d.Doc == nil && s.Doc == nil {
					names = append(names, s.Name)
				}
			case *ast.ValueSpec:
				documented = documented || s.Doc != nil || s.Comment != nil
				if !documented {
					names = append(names, s.Names...)
				}
			}
		}
	}
	return names
}

// receiver is the name of the type that a method belongs to: the first name in it, be it *T or T[V].
func receiver(d *ast.FuncDecl) string {
	for n := range ast.Preorder(d.Recv.List[0].Type) {
		if id, ok := n.(*ast.Ident); ok {
			return id.Name
		}
	}
	return ""
}

func TestGoroutinesAreStartedInOnePackage(t *testing.T) {
	for name, files := range library(t) {
		if name == goroutines || floors[name].suite {
			continue
		}
		for _, f := range files {
			for n := range ast.Preorder(f.File) {
				_, starts := n.(*ast.GoStmt)
				if starts || f.mentions(n, "sync", "WaitGroup") { // whose method Go starts one too
					t.Errorf("%s: goroutines are started by package %s, which ends them at Close", f.at(n), goroutines)
				}
			}
		}
	}
}

func TestTheLibraryNeverSleeps(t *testing.T) {
	for name, files := range library(t) {
		for _, f := range files {
			for n := range ast.Preorder(f.File) {
				if f.mentions(n, "time", "Sleep") && !floors[name].suite {
					t.Errorf("%s: a sleep can't be ended; wait on a timer and a context", f.at(n))
				}
			}
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	for name, files := range packages(t) {
		for _, f := range files {
			if lines := f.set.File(f.Pos()).LineCount(); lines > longestFile && !program(name) {
				t.Errorf("%s has %d lines; more than %d is a second idea", f.name, lines, longestFile)
			}
		}
	}
}

func program(name string) bool { return ofAny(name, "example") || ofAny(name, "bench") }
func support(name string) bool { return ofAny(name, "internal") }

// ofAny says whether name is under dir of one of the modules.
func ofAny(name, dir string) bool {
	for module, r := range floors {
		if r.module && under(name, module+"/"+dir) {
			return true
		}
	}
	return under(name, dir)
}

func under(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// file is a parsed file that isn't a test.
type file struct {
	*ast.File
	set  *token.FileSet
	name string
}

func (f file) at(n ast.Node) string {
	return f.name + ":" + strconv.Itoa(f.set.Position(n.Pos()).Line)
}

// mentions reports whether the node is the name pkg.name, whatever the file calls the package.
func (f file) mentions(n ast.Node, pkg, name string) bool {
	selector, ok := n.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool {
		return s.Path.Value == strconv.Quote(pkg) && (s.Name == nil && x.Name == path.Base(pkg) || s.Name != nil && x.Name == s.Name.Name)
	})
}

// library is the packages of the table.
func library(t *testing.T) map[string][]file {
	all := packages(t)
	maps.DeleteFunc(all, func(name string, _ []file) bool { return program(name) || support(name) })
	return all
}

// packages parses what isn't a test, for any system and build tag, by folder. A nested module without a row is no part of this.
func packages(t *testing.T) map[string][]file {
	t.Helper()
	found := map[string][]file{}
	set := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".":
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if err == nil && !floors[filepath.ToSlash(name)].module || d.Name() == "testdata" || strings.ContainsAny(d.Name()[:1], "._") {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			parsed, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			dir := path.Dir(filepath.ToSlash(name))
			found[dir] = append(found[dir], file{parsed, set, name})
		}
		return nil
	}))
	return found
}
