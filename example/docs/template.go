package docs

import (
	"embed"
	"html/template"
)

//go:embed web
var web embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{"style": style}).ParseFS(web, "web/*.html"))

func style() (template.CSS, error) {
	text, err := web.ReadFile("web/style.css")
	return template.CSS(text), err // embedded
}
