package site

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/bellwether-cache/bellwether/example/docs"
)

// Headers of an answer.
const (
	HeaderRendering = "X-Rendering" // which rendering the page is from
	HeaderReplica   = "X-Replica"   // who answered
)

// What a page says of itself, and what its absence does.
const (
	lasting = "max-age=60, stale-while-revalidate=600, stale-if-error=3600"
	absence = "max-age=30"
)

// pages renders a page for each request that it gets. It knows of no cache.
type pages struct {
	origin *Origin
	says   bool // how long its answers last
}

func (p pages) index(w http.ResponseWriter, r *http.Request) { p.serve(w, r, indexPath) }

func (p pages) get(w http.ResponseWriter, r *http.Request) { p.serve(w, r, chi.URLParam(r, "*")) }

func (p pages) serve(w http.ResponseWriter, r *http.Request, path string) {
	page, err := p.origin.Render(r.Context(), path)
	switch {
	case err == nil:
		p.say(w, lasting)
		page.write(w)
	case errors.Is(err, docs.ErrUnknown):
		p.say(w, absence)
		fallthrough
	default:
		refuse(w, err)
	}
}

// refuse tells an error in HTTP's words.
func refuse(w http.ResponseWriter, err error) {
	if errors.Is(err, docs.ErrUnknown) {
		http.Error(w, http.StatusText(http.StatusNotFound), http.StatusNotFound)
		return
	}
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

func (p pages) say(w http.ResponseWriter, control string) {
	if p.says {
		w.Header().Set("Cache-Control", control)
	}
}

func (p Page) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set(HeaderRendering, p.Rendering)
	_, _ = w.Write(p.HTML) // the reader left; there is nobody to tell
}

// changed answers a request to take a page out of the cache. The middleware does that whenever it sees an unsafe method
// succeed (RFC 9111 §4.4): a site that can be edited has no more to do.
func changed(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// named refuses names that no page can have, so that they take no room in the cache.
func named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !docs.Valid(chi.URLParam(r, "*")) {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
