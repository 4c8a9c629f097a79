package docs_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/docs"
)

func TestPackage(t *testing.T) {
	page := render(t, docs.New(watched{small, t}), "text/plain")
	for sentence, want := range map[string]string{
		"has the package comment, escaped":      `Package plain says things plainly. It isn&apos;t &lt;b&gt;bold&lt;/b&gt;.`,
		"has its import path":                   `import "text/plain"`,
		"links to its own names":                `as <a href="#Loud.Say">Loud.Say</a> does`,
		"links to the pages of other packages":  `<a href="/pkg/strings#ToLower">strings.ToLower</a>`,
		"has functions":                         `<section id="Say">`,
		"has methods":                           `<section id="Loud.Say"><h3>func (*Loud) Say`,
		"keeps comments inside declarations":    `<span class="comment">// in decibels</span>`,
		"says that fields were left out":        `contains filtered or unexported fields`,
		"escapes constants":                     `<span class="string">&#34;&lt;20 dB&gt;&#34;</span>`,
		"has examples with their comments":      `plain.Say(<span class="string">&#34;hello&#34;</span>) <span class="comment">// quietly</span>`,
		"has the output of examples beside":     `<pre class="output">said`,
		"lists the folders below":               `<a href="/pkg/text/plain/more">`,
		"lists its own files without the tests": `<p class="files"><code>plain.go</code> </p>`,
	} {
		t.Run(sentence, func(t *testing.T) { assert.Contains(t, page, want) })
	}
	for sentence, leaked := range map[string]string{
		"leaves out unexported names":         `secret`,
		"leaves out other platforms":          `OnlyThere`,
		"leaves out files that are ignored":   `generated`,
		"leaves out folders that aren't seen": `/internal`,
		"shows no Output comment as code":     `// Output`,
	} {
		t.Run(sentence, func(t *testing.T) { assert.NotContains(t, page, leaked) })
	}
}

func TestPackageUnknown(t *testing.T) {
	library := docs.New(watched{small, t})
	for _, path := range []string{
		"", ".", "..", "/", "/etc", "no/such/package", "text", "empty", "text/plain/", "text//plain", "text/./plain", "text/../text/plain",
		"text/plain/plain.go", "text/plain/testdata", "text/plain/internal/inside", "vendor/example.org/v", "cmd/tool", "_old",
		"text\\plain", "text/plain\x00", "tëxt", "text/plain?", "C:/text",
	} {
		html, err := library.Package(t.Context(), path)
		assert.ErrorIs(t, err, docs.ErrUnknown, "%q", path)
		assert.Empty(t, html, "%q", path)
	}
}

func TestPackageBroken(t *testing.T) {
	_, err := docs.New(small).Package(t.Context(), "broken")
	require.ErrorContains(t, err, "broken.go:1")
	assert.NotErrorIs(t, err, docs.ErrUnknown, "a package that can't be read is there all the same")
}

func TestPackageStopsBetweenFiles(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	tree := cancelling{small, func() { cancel(enough) }}
	_, err := docs.New(tree).Package(ctx, "text/plain")
	assert.ErrorIs(t, err, enough)
}

// cancelling ends a context as soon as a file is read.
type cancelling struct {
	fs.FS
	cancel func()
}

func (c cancelling) ReadFile(name string) ([]byte, error) {
	c.cancel()
	return fs.ReadFile(c.FS, name)
}
