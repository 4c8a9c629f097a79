package docs

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/printer"
	"go/token"
	"html/template"
	"strings"
)

// writer turns what go/doc found into HTML.
type writer struct {
	set     *token.FileSet
	doc     *doc.Package
	parser  *comment.Parser
	printer *comment.Printer
	err     error // the first failure; later ones are its consequences
}

type example struct {
	Name         string // what it shows beyond the declaration it stands at, may be empty
	Doc          template.HTML
	Code, Output template.HTML
}

// text renders a doc comment.
func (w *writer) text(text string) template.HTML {
	return template.HTML(w.printer.HTML(w.parser.Parse(text))) // the printer escapes
}

// decl renders a declaration as Go source.
func (w *writer) decl(decl ast.Decl) template.HTML { return highlight(w.source(decl)) }

func (w *writer) examples(from []*doc.Example) []example {
	var examples []example
	for _, e := range from {
		ex := example{Name: strings.ReplaceAll(e.Suffix, "_", " "), Doc: w.text(e.Doc), Code: highlight(w.code(e))}
		if e.Output != "" {
			ex.Output = template.HTML(template.HTMLEscapeString(e.Output)) // escaped
		}
		examples = append(examples, ex)
	}
	return examples
}

// code is the body of an example without its braces, or the whole file where the example is one.
func (w *writer) code(e *doc.Example) []byte {
	text := w.source(&printer.CommentedNode{Node: e.Code, Comments: e.Comments})
	if _, block := e.Code.(*ast.BlockStmt); !block {
		return text
	}
	text = bytes.TrimSuffix(bytes.TrimPrefix(text, []byte("{")), []byte("}"))
	if output := bytes.LastIndex(text, []byte("// Output:")); output >= 0 {
		text = text[:output]
	}
	return bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\n\t"), []byte("\n")))
}

func (w *writer) source(node any) []byte {
	var out bytes.Buffer
	config := printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 4}
	if err := config.Fprint(&out, w.set, node); err != nil && w.err == nil {
		w.err = fmt.Errorf("docs: %s: print a declaration: %w", w.doc.ImportPath, err)
	}
	return out.Bytes()
}
