package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

func ExampleNew() {
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	if err != nil {
		panic(err)
	}
	defer responses.Close()

	r := chi.NewRouter()
	r.Use(middleware.New(responses, middleware.Options{}))
	r.Get("/pages/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=600, stale-if-error=3600")
		fmt.Fprint(w, "the page ", chi.URLParam(r, "name"))
	})
	for range 2 {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", "/pages/home", nil))
		fmt.Println(w.Body, "|", w.Header().Get("Cache-Status"))
	}
	// Output:
	// the page home | Bellwether;fwd=uri-miss;stored
	// the page home | Bellwether;hit;ttl=59
}

func ExamplePurge() {
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	if err != nil {
		panic(err)
	}
	defer responses.Close()
	options := middleware.Options{Policy: stale.Policy{Fresh: time.Hour}}
	price := 1
	h := middleware.New(responses, options)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, price) }))
	show := func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://shop.test/price", nil))
		fmt.Println(w.Body)
	}
	show()
	price = 2
	show()
	if err := middleware.Purge(context.Background(), responses, options, "http://shop.test/price"); err != nil {
		panic(err) // it may still be there
	}
	show()
	// Output:
	// 1
	// 1
	// 2
}
