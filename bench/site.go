package main

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

// Site is what a replica serves over HTTP: the page /{key} is the key's value, computed by what find returns.
type Site interface {
	routes(find func(key string) Compute) http.Handler
	Close() error
}

// byHand is a handler that asks an arm for what it writes.
type byHand struct{ Replica }

func (s byHand) routes(find func(key string) Compute) http.Handler {
	r := chi.NewRouter()
	r.Get("/{key}", func(w http.ResponseWriter, r *http.Request) {
		key := chi.URLParam(r, "key")
		v, err := s.Get(r.Context(), key, find(key))
		answer(w, v, err)
	})
	r.Delete("/{key}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, s.Delete(r.Context(), chi.URLParam(r, "key")))
	})
	return r
}

func answer(w http.ResponseWriter, v []byte, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, _ = w.Write(v) // the client has left
}

// behind is a handler that knows of no cache, behind the middleware.
type behind struct {
	responses *cache.Cache[middleware.Response]
	policy    stale.Policy
	steps
}

func newBehind(rdb *redis.Client, t Terms) (Site, error) {
	b := &behind{policy: stale.Policy{Fresh: t.Fresh, WhileRevalidate: t.WhileRevalidate, IfError: t.IfError}}
	var err error
	b.responses, err = openCache[middleware.Response](rdb, t, &b.steps)
	return b, err
}

func (b *behind) routes(find func(key string) Compute) http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.New(b.responses, middleware.Options{Policy: b.policy}))
	r.Get("/{key}", func(w http.ResponseWriter, r *http.Request) {
		v, err := find(chi.URLParam(r, "key"))(r.Context())
		answer(w, v, err)
	})
	r.Delete("/{key}", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil, nil) }) // the middleware does the rest
	return r
}

func (b *behind) Close() error { return b.responses.Close() }
