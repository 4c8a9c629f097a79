package site

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/example/docs"
	"github.com/bellwether-cache/bellwether/recompute"
)

// Headers of an answer.
const (
	HeaderOutcome   = "X-Outcome"   // how the cache came to it
	HeaderAge       = "X-Age"       // how long ago the page was published; Age (RFC 9111) says the same in whole seconds
	HeaderRendering = "X-Rendering" // which rendering the page is from
	HeaderReplica   = "X-Replica"   // who answered
)

// handler serves the pages of one shelf.
type handler struct{ shelf shelf }

// routes mounts the handler: GET answers, DELETE takes the page out of the cache.
func (h handler) routes(r chi.Router) {
	r.Get("/*", h.get)
	r.Delete("/*", h.remove)
}

func (h handler) get(w http.ResponseWriter, r *http.Request) {
	if path := chi.URLParam(r, "*"); docs.Valid(path) {
		h.serve(w, r, path)
		return
	}
	http.NotFound(w, r) // no such name can exist, so it takes no room in the cache
}

func (h handler) index(w http.ResponseWriter, r *http.Request) { h.serve(w, r, indexPath) }

func (h handler) serve(w http.ResponseWriter, r *http.Request, path string) {
	ask, missing := h.shelf.lookup, http.StatusNotFound
	if onlyIfCached(r) {
		ask, missing = h.shelf.held, http.StatusGatewayTimeout
	}
	a, err := ask(r.Context(), path)
	if err != nil {
		refuse(w, err, missing)
		return
	}
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Age", strconv.Itoa(int(a.age.Seconds())))
	head.Set(HeaderAge, a.age.Round(time.Millisecond).String())
	head.Set(HeaderOutcome, a.outcome)
	head.Set(HeaderRendering, a.page.Rendering)
	_, _ = w.Write(a.page.HTML) // the reader left; there is nobody to tell
}

func (h handler) remove(w http.ResponseWriter, r *http.Request) {
	path := chi.URLParam(r, "*")
	if !docs.Valid(path) {
		http.NotFound(w, r)
		return
	}
	if err := h.shelf.remove(r.Context(), path); err != nil {
		refuse(w, err, http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func onlyIfCached(r *http.Request) bool {
	return strings.EqualFold(strings.TrimSpace(r.Header.Get("Cache-Control")), "only-if-cached") // RFC 9111 §5.2.1.7
}

// refuse tells an error in HTTP's words; missing is the status for a page that isn't there.
func refuse(w http.ResponseWriter, err error, missing int) {
	switch {
	case errors.Is(err, cache.ErrNotFound):
		http.Error(w, http.StatusText(missing), missing)
	case errors.Is(err, recompute.ErrBusy):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "rendering takes longer than expected", http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
