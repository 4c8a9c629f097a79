package docs_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/docs"
)

// small is a library with one documented package, one command and everything that must stay out of sight.
var small = fstest.MapFS{
	"text/plain/plain.go": file(`
		// Package plain says things plainly. It isn't <b>bold</b>.
		package plain

		// Say says it, as [Loud.Say] does, but quietly. See also [strings.ToLower].
		func Say(what string) error { return secret(what) }

		// Loud is for those who shout.
		type Loud struct {
			Volume int // in decibels
			hidden int
		}

		// Say shouts.
		func (l *Loud) Say(what string) {}

		// Whisper is a volume.
		const Whisper = "<20 dB>"

		func secret(string) error { return nil }`),
	"text/plain/plain_plan9.go": file(`
		package plain

		// OnlyThere exists on Plan 9.
		func OnlyThere() {}`),
	"text/plain/gen.go": file(`
		//go:build ignore

		package main

		func main() { panic("generated") }`),
	"text/plain/example_test.go": file(`
		package plain_test

		import ("fmt"; "text/plain")

		func ExampleSay() {
			plain.Say("hello") // quietly
			fmt.Println("said")
			// Output: said
		}`),
	"text/plain/more/more.go":          file(`package more`),
	"text/plain/testdata/t.go":         file(`package t`),
	"text/plain/internal/inside/in.go": file(`package inside`),
	"broken/broken.go":                 file(`package broken; func (`),
	"cmd/tool/main.go":                 file(`package main`),
	"vendor/example.org/v/v.go":        file(`package v`),
	"empty/readme.txt":                 file(`no package`),
	"_old/old.go":                      file(`package old`),
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(strings.TrimSpace(text))} }

// watched is a tree that fails the test when anything is opened that must stay out of sight.
type watched struct {
	fs.FS
	t testing.TB
}

func (w watched) Open(name string) (fs.File, error) {
	assert.True(w.t, fs.ValidPath(name), "opened %q", name)
	for part := range strings.SplitSeq(name, "/") {
		assert.NotContains(w.t, []string{"internal", "vendor", "testdata", "cmd", ".."}, part, "opened %q", name)
	}
	return w.FS.Open(name)
}

func render(t *testing.T, l *docs.Library, path string) string {
	t.Helper()
	html, err := l.Package(context.Background(), path)
	require.NoError(t, err)
	return string(html)
}

// toolchain is the library of the toolchain that runs the tests.
func toolchain(t *testing.T) *docs.Library {
	t.Helper()
	goroot, err := docs.GOROOT(t.Context())
	require.NoError(t, err)
	library, err := docs.Open(goroot)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, library.Close()) })
	return library
}
