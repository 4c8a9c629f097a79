package docs

import (
	"bytes"
	"go/scanner"
	"go/token"
	"html/template"
)

// highlight escapes Go source and marks its comments, strings and keywords.
func highlight(text []byte) template.HTML {
	var out bytes.Buffer
	var scan scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	scan.Init(file, text, func(token.Position, string) {}, scanner.ScanComments)
	written := 0
	for {
		pos, tok, literal := scan.Scan()
		if tok == token.EOF {
			break
		}
		class := classOf(tok)
		if class == "" {
			continue
		}
		if tok.IsKeyword() {
			literal = tok.String()
		}
		start := file.Offset(pos)
		end := min(start+len(literal), len(text))
		template.HTMLEscape(&out, text[written:start])
		out.WriteString(`<span class="` + class + `">`)
		template.HTMLEscape(&out, text[start:end])
		out.WriteString(`</span>`)
		written = end
	}
	template.HTMLEscape(&out, text[written:])
	return template.HTML(out.String()) // escaped piece by piece
}

func classOf(tok token.Token) string {
	switch {
	case tok == token.COMMENT:
		return "comment"
	case tok == token.STRING, tok == token.CHAR:
		return "string"
	case tok.IsKeyword():
		return "keyword"
	}
	return ""
}
