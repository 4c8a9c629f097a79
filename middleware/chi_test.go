package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

// route builds a router that has the middleware in one place.
var routers = map[string]func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler{
	"Use": func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
		r := chi.NewRouter()
		r.Use(use)
		r.Get("/users/{id}/items/*", h)
		return r
	},
	"With": func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
		r := chi.NewRouter()
		r.With(use).Get("/users/{id}/items/*", h)
		return r
	},
	"Route": func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
		r := chi.NewRouter()
		r.Route("/users/{id}", func(r chi.Router) {
			r.Use(use)
			r.Get("/items/*", h)
		})
		return r
	},
	"Mount": func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
		sub := chi.NewRouter()
		sub.Get("/items/*", h)
		r := chi.NewRouter()
		r.Mount("/users/{id}", use(sub))
		return r
	},
	"outside": func(use func(http.Handler) http.Handler, h http.HandlerFunc) http.Handler {
		r := chi.NewRouter()
		r.Get("/users/{id}/items/*", h)
		return use(r)
	},
}

type ctxKey struct{}

// chi takes its routing context back when a request is over, and gives it to the next. A handler that goes on for
// others after its client has left must still know what it was asked.
func TestURLParametersHoldAfterTheLeaderHasLeft(t *testing.T) {
	for name, build := range routers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			h := func(w http.ResponseWriter, r *http.Request) {
				if chi.URLParam(r, "id") == "slow" {
					g.pass()
				}
				assert.Equal(t, "outer", r.Context().Value(ctxKey{}), "values are kept")
				say(w, chi.URLParam(r, "id")+" "+chi.URLParam(r, "*")+" "+chi.RouteContext(r.Context()).RoutePattern(), minute)
			}
			s := serve(t, h, around(func(http.Handler) http.Handler {
				responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, responses.Close()) })
				inner := build(middleware.New(responses, middleware.Options{}), h)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ctxKey{}, "outer")))
				})
			}))
			pattern := " /users/{id}/items/*"
			leader := make(chan error, 1)
			ctx, leave := context.WithCancel(t.Context())
			r := s.request(0, "GET", "/users/slow/items/1").WithContext(ctx)
			go func() { leader <- s.do(r).err }()
			g.wait(t)
			waiters := s.crowd(3, "/users/slow/items/1")
			s.settle()
			leave()
			require.Error(t, <-leader)
			s.settle()
			for _, id := range []string{"a", "b", "c", "d"} { // they get the contexts that are free
				assert.Equal(t, id+" x"+pattern, s.get("/users/"+id+"/items/x").body)
			}
			g.free()
			assert.Equal(t, map[string]int{"200 slow 1" + pattern: 3}, bodies(waiters()))
			assert.True(t, s.get("/users/slow/items/1").hit())
		})
	}
}

// Behind an answer the handler begins when the request may be over already.
func TestURLParametersHoldBehindAnAnswer(t *testing.T) {
	t.Parallel()
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	require.NoError(t, err)
	defer responses.Close()
	r := chi.NewRouter()
	r.With(middleware.New(responses, middleware.Options{})).Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		say(w, chi.URLParam(r, "id"), "Cache-Control: max-age=1, stale-while-revalidate=60")
	})
	ask := func() {
		for i := range 200 {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest("GET", fmt.Sprint("/users/", i), nil))
			assert.Equal(t, fmt.Sprint(i), w.Body.String())
		}
	}
	ask()
	time.Sleep(1100 * time.Millisecond)
	ask()
	time.Sleep(500 * time.Millisecond)
	ask()
}

func TestPathValuesOfAServeMuxAreKept(t *testing.T) {
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	require.NoError(t, err)
	defer responses.Close()
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", middleware.New(responses, middleware.Options{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		say(w, r.PathValue("id"), minute)
	})))
	for range 2 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/users/7", nil))
		assert.Equal(t, "7", w.Body.String())
	}
}
