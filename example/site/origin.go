package site

import (
	"context"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

// indexPath is the path of the page that lists all packages. No package has it.
const indexPath = "."

// Page is what readers come for.
type Page struct {
	HTML      []byte
	Rendering string // differs between any two renderings, of any process
}

// Library renders pages; *docs.Library is one.
type Library interface {
	Package(ctx context.Context, path string) ([]byte, error)
	Index(ctx context.Context) ([]byte, error)
}

// Origin is the slow thing behind the cache. It counts what it does.
type Origin struct {
	library Library

	mu    sync.Mutex
	total int
	count map[string]int
	gates map[string]*Gate

	failing atomic.Bool // see fail
}

// NewOrigin returns an origin that renders from library.
func NewOrigin(library Library) *Origin {
	return &Origin{library: library, count: map[string]int{}, gates: map[string]*Gate{}}
}

// Render renders the page at path. A package that isn't there is a docs.ErrUnknown.
func (o *Origin) Render(ctx context.Context, path string) (Page, error) {
	rendering, gate := o.begin(path)
	if err := gate.pass(ctx); err != nil {
		return Page{}, err
	}
	html, err := o.render(ctx, path)
	return Page{HTML: html, Rendering: rendering}, err
}

func (o *Origin) render(ctx context.Context, path string) ([]byte, error) {
	if path == indexPath {
		return o.library.Index(ctx)
	}
	return o.library.Package(ctx, path)
}

// Count says how often rendering the page at path has begun.
func (o *Origin) Count(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count[path]
}

func (o *Origin) begin(path string) (rendering string, gate *Gate) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total++
	o.count[path]++
	return strconv.Itoa(os.Getpid()) + "." + strconv.Itoa(o.total), o.gates[path]
}
