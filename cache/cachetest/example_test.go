package cachetest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/cachetest"
	"github.com/bellwether-cache/bellwether/stale"
)

// What does a service do when no write reaches its store?
func ExampleNewChaos() {
	chaos := cachetest.NewChaos(cache.NewMemory(), cachetest.ChaosOptions{
		Refuse: 1,
		Steps:  []cachetest.Step{cachetest.OnSet},
	})
	greetings, err := cache.New[string](chaos, cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute}})
	if err != nil {
		panic(err)
	}
	defer greetings.Close()
	greet := func(context.Context) (string, error) { return "hello", nil }

	r, err := greetings.Lookup(context.Background(), "world", greet)
	fmt.Println(r.Value, r.Outcome, err)
	fmt.Println("writes that were refused:", chaos.Count(cachetest.Refused, cachetest.OnSet))

	chaos.Calm()
	fmt.Println(greetings.Set(context.Background(), "world", "hello again"))
	// Output:
	// hello computed <nil>
	// writes that were refused: 1
	// <nil>
}
