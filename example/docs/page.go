package docs

import (
	"go/doc"
	"go/doc/comment"
	"html/template"
	"strings"
)

// page is what the template of a package shows.
type page struct {
	Path, Name, Synopsis string
	Doc                  template.HTML
	Examples             []example
	Consts, Vars         []value
	Funcs                []function
	Types                []typ
	Bugs                 []template.HTML
	Files, Folders       []string
}

type value struct{ Decl, Doc template.HTML }

type function struct {
	Name, Anchor string
	Receiver     string // "(b *Buffer) " of a method, else empty
	Decl, Doc    template.HTML
	Examples     []example
}

type typ struct {
	Name           string
	Decl, Doc      template.HTML
	Examples       []example
	Consts, Vars   []value
	Funcs, Methods []function
}

// newPage goes over the declarations once. The first one that can't be printed ends up in the error.
func newPage(src *source) (page, error) {
	w := writer{set: src.set, doc: src.doc, parser: src.doc.Parser(), printer: src.doc.Printer()}
	w.printer.DocLinkURL = func(link *comment.DocLink) string { return link.DefaultURL("/pkg") }
	w.printer.HeadingLevel = 3
	d := src.doc
	p := page{
		Path: src.path, Name: d.Name, Synopsis: d.Synopsis(d.Doc),
		Doc: w.text(d.Doc), Examples: w.examples(d.Examples),
		Consts: w.values(d.Consts), Vars: w.values(d.Vars), Funcs: w.functions("", d.Funcs),
		Files: src.files, Folders: src.folders,
	}
	for _, t := range d.Types {
		p.Types = append(p.Types, w.typ(t))
	}
	for _, note := range d.Notes["BUG"] {
		p.Bugs = append(p.Bugs, w.text(note.Body))
	}
	return p, w.err
}

func (w *writer) typ(t *doc.Type) typ {
	return typ{
		Name: t.Name, Decl: w.decl(t.Decl), Doc: w.text(t.Doc), Examples: w.examples(t.Examples),
		Consts: w.values(t.Consts), Vars: w.values(t.Vars),
		Funcs: w.functions("", t.Funcs), Methods: w.functions(t.Name, t.Methods),
	}
}

func (w *writer) values(from []*doc.Value) []value {
	var values []value
	for _, v := range from {
		values = append(values, value{Decl: w.decl(v.Decl), Doc: w.text(v.Doc)})
	}
	return values
}

func (w *writer) functions(receiver string, from []*doc.Func) []function {
	var functions []function
	for _, f := range from {
		fn := function{
			Name: f.Name, Anchor: f.Name, Decl: w.decl(f.Decl), Doc: w.text(f.Doc), Examples: w.examples(f.Examples),
		}
		if receiver != "" {
			fn.Anchor, fn.Receiver = receiver+"."+f.Name, "("+f.Recv+") "
		}
		functions = append(functions, fn)
	}
	return functions
}

func isTest(file string) bool { return strings.HasSuffix(file, "_test.go") }
