package site

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/bellwether-cache/bellwether/stale"
)

// routes is what a replica serves. What is about one request or one reader stands outside of the cache: the router's own.
func (r *Replica) routes(origin *Origin, byHand plain) http.Handler {
	cached := through(r.responses, stale.Policy{}, r.failed) // by what the handler says
	short := through(r.responses, Short, r.failed)           // by what we say

	router := chi.NewRouter()
	router.Use(r.count, r.sign, known, middleware.Recoverer, middleware.GetHead)
	router.With(named, short).Get(PathHot+"*", pages{origin: origin}.get)
	router.With(named, short).Delete(PathHot+"*", changed)
	router.With(named).Get(PathPlain+"*", byHand.get)
	router.With(named).Delete(PathPlain+"*", byHand.remove)
	router.With(named, cached).Get(PathPages+"*", pages{origin: origin, says: true}.get)
	router.With(named, cached).Delete(PathPages+"*", changed)
	router.Group(func(router chi.Router) {
		router.Use(cached)
		router.Get("/", pages{origin: origin, says: true}.index)
		router.Get(PathYou, you)
		router.Get(PathLive, r.live)
		router.Get(PathFailing, origin.fail)
		router.Delete(PathFailing, changed)
	})
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

// known gives every request the name of the site. The host is a part of the key, and here each replica has a port of its own; so
// nobody can fill the cache under hosts that he makes up, either.
func known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q = q.WithContext(q.Context())
		q.Host = Host
		next.ServeHTTP(w, q)
	})
}
