package cache_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/stale"
)

// A cache in front of something slow. In production the store is redisstore.New(…), shared by all replicas.
func ExampleNew() {
	pages, err := cache.New(cache.NewMemory(), cache.Options[string]{
		Policy: stale.Policy{Fresh: time.Minute, WhileRevalidate: 10 * time.Minute, IfError: time.Hour},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pages.Close()

	render := func(context.Context) (string, error) {
		fmt.Println("rendering, once")
		return "<h1>net/http</h1>", nil
	}
	for range 3 {
		page, err := pages.GetOrCompute(context.Background(), "net/http", render)
		fmt.Println(page, err)
	}
	// Output:
	// rendering, once
	// <h1>net/http</h1> <nil>
	// <h1>net/http</h1> <nil>
	// <h1>net/http</h1> <nil>
}

// What can't work is refused, all of it in one error.
func ExampleNew_options() {
	_, err := cache.New(cache.NewMemory(), cache.Options[string]{
		Policy: stale.Policy{Jitter: 7},
		Wait:   -time.Second,
	})
	fmt.Println(err)
	// Output:
	// stale: Policy.Fresh is 0s, must be at least 1ms
	// stale: Policy.Jitter is 7, must be from 0 to 1
	// cache: Options.Wait is -1s, must be at least 1ms (0: as Limit); a bare number means nanoseconds
}

func ExampleCache_GetOrCompute() {
	users, err := cache.New(cache.NewMemory(), cache.Options[string]{
		Policy: stale.Policy{Fresh: time.Minute, Negative: 10 * time.Second},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer users.Close()

	table := map[int]string{1: "Ada"}
	find := func(id int) (string, error) {
		return users.GetOrCompute(context.Background(), fmt.Sprintf("user:%d", id), func(context.Context) (string, error) {
			fmt.Println("SELECT … WHERE id =", id)
			if name, ok := table[id]; ok {
				return name, nil
			}
			return "", cache.ErrNotFound // is remembered too
		})
	}
	fmt.Println(find(1))
	fmt.Println(find(2))
	_, err = find(2)
	fmt.Println(errors.Is(err, cache.ErrNotFound))
	// Output:
	// SELECT … WHERE id = 1
	// Ada <nil>
	// SELECT … WHERE id = 2
	//  cache: not found
	// true
}

// Lookup says how an answer came about, for metrics or a header.
func ExampleCache_Lookup() {
	pages, err := cache.New(cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pages.Close()

	for range 2 {
		r, err := pages.Lookup(context.Background(), "net/http", func(context.Context) (string, error) {
			return "<h1>net/http</h1>", nil
		})
		fmt.Println(r.Value, r.Outcome, err)
	}
	// Output:
	// <h1>net/http</h1> computed <nil>
	// <h1>net/http</h1> hit <nil>
}

// Whoever changes the source knows best: put the new value, or delete the old one. Change the source first.
func ExampleCache_Set() {
	prices, err := cache.New(cache.NewMemory(), cache.Options[int]{Policy: stale.Policy{Fresh: time.Hour}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer prices.Close()
	ctx := context.Background()

	source := 100
	load := func(context.Context) (int, error) { return source, nil }
	fmt.Println(prices.GetOrCompute(ctx, "tea", load))

	source = 120
	fmt.Println(prices.Set(ctx, "tea", 120))
	fmt.Println(prices.GetOrCompute(ctx, "tea", load))
	// Output:
	// 100 <nil>
	// <nil>
	// 120 <nil>
}

// A deleted value never comes back: not from another replica, and not from a computation that was under way.
func ExampleCache_Delete() {
	roles, err := cache.New(cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Hour}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roles.Close()
	ctx := context.Background()

	role := "admin"
	load := func(context.Context) (string, error) { return role, nil }
	fmt.Println(roles.GetOrCompute(ctx, "jane", load))

	role = "guest" // first the source
	fmt.Println(roles.Delete(ctx, "jane"))
	_, err = roles.Get(ctx, "jane") // never computes
	fmt.Println(err)
	fmt.Println(roles.GetOrCompute(ctx, "jane", load))
	// Output:
	// admin <nil>
	// <nil>
	// cache: not found
	// guest <nil>
}

// A fallback answers when there is nothing to serve, not even a stale value.
func ExampleOptions_fallback() {
	rates, err := cache.New(cache.NewMemory(), cache.Options[float64]{
		Policy: stale.Policy{Fresh: time.Minute, IfError: 24 * time.Hour},
		Fallback: func(_ context.Context, key string, cause error) (float64, error) {
			fmt.Printf("%s: %v\n", key, cause)
			return 1, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rates.Close()

	r, err := rates.Lookup(context.Background(), "EUR/USD", func(context.Context) (float64, error) {
		return 0, errors.New("no route to host")
	})
	fmt.Println(r.Value, r.Outcome, err)
	// Output:
	// EUR/USD: no route to host
	// 1 fell-back <nil>
}

// A fence goes along with what a computation writes elsewhere: a resource that refuses lower ones than it has seen is
// safe from a computation that was paused and superseded.
func ExampleFenceOf() {
	reports, err := cache.New(cache.NewMemory(), cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reports.Close()

	var accepted cache.Fence // by the resource
	for range 2 {
		_, _ = reports.GetOrCompute(context.Background(), "report", func(ctx context.Context) (string, error) {
			fence := cache.FenceOf(ctx) // UPDATE reports SET … WHERE id = $1 AND fence < $2
			fmt.Println(fence > accepted)
			accepted = fence
			return "v", nil
		})
		_ = reports.Delete(context.Background(), "report")
	}
	// Output:
	// true
	// true
}
