package site

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// routes is what a replica serves.
func (r *Replica) routes(pages, hot, byHand shelf) http.Handler {
	router := chi.NewRouter()
	router.Use(r.count, r.sign, middleware.Recoverer)
	router.Get("/", handler{pages}.index)
	for path, shelf := range map[string]shelf{PathPages: pages, PathHot: hot, PathPlain: byHand} {
		router.Route(strings.TrimSuffix(path, "/"), handler{shelf}.routes)
	}
	return router
}

// count keeps the number of requests under way.
func (r *Replica) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.underway.Add(1)
		defer r.underway.Add(-1)
		next.ServeHTTP(w, q)
	})
}

// sign says in every answer whose it is.
func (r *Replica) sign(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set(HeaderReplica, r.Name)
		next.ServeHTTP(w, q)
	})
}
