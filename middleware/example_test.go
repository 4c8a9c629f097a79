package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
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

// The policy gives a lifetime to a response that says nothing of one; what its handler forbids stays forbidden.
func ExampleOptions() {
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	if err != nil {
		panic(err)
	}
	defer responses.Close()
	cached := middleware.New(responses, middleware.Options{
		Policy: stale.Policy{Fresh: time.Hour, WhileRevalidate: time.Hour, Negative: 30 * time.Second},
		Name:   "shop",
	})

	r := chi.NewRouter()
	r.Use(cached)
	r.Get("/price", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "12.50") })
	r.Get("/cart", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private")
		fmt.Fprint(w, "two apples")
	})
	for _, path := range []string{"/price", "/price", "/cart", "/cart", "/nothing", "/nothing"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, w.Code, w.Header().Get("Cache-Status"))
	}
	// Output:
	// /price 200 shop;fwd=uri-miss;stored
	// /price 200 shop;hit;ttl=3599
	// /cart 200 shop;fwd=uri-miss;detail=private
	// /cart 200 shop;fwd=bypass;detail=not-shared
	// /nothing 404 shop;fwd=uri-miss;stored
	// /nothing 404 shop;hit;ttl=29
}

func ExampleKey() {
	responses, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	if err != nil {
		panic(err)
	}
	defer responses.Close()
	cached := middleware.New(responses, middleware.Options{Policy: stale.Policy{Fresh: time.Hour}, Key: middleware.Key{
		IgnoreQuery: []string{"utm_source"},
		Add: func(r *http.Request) (string, error) { // what the handler goes by, and the URI doesn't say
			tenant, _, ok := strings.Cut(r.Host, ".")
			if !ok {
				return "", errors.New("no tenant")
			}
			return tenant, nil
		},
	}})
	h := cached(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "prices of "+r.Host) }))
	for _, url := range []string{
		"http://ada.shop.test/prices", "http://ada.shop.test/prices?utm_source=letter", "http://bob.shop.test/prices", "http://localhost/prices",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", url, nil))
		fmt.Println(w.Body, "|", w.Header().Get("Cache-Status"))
	}
	// Output:
	// prices of ada.shop.test | Bellwether;fwd=uri-miss;stored
	// prices of ada.shop.test | Bellwether;hit;ttl=3599
	// prices of bob.shop.test | Bellwether;fwd=uri-miss;stored
	// prices of localhost | Bellwether;fwd=bypass;detail=key
}
