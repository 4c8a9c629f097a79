package stale_test

import (
	"fmt"
	"time"

	"github.com/bellwether-cache/bellwether/stale"
)

func ExamplePolicy() {
	p := stale.Policy{
		Fresh:           time.Minute,
		WhileRevalidate: 5 * time.Minute,
		IfError:         time.Hour,
	}
	for _, age := range []time.Duration{0, time.Minute, 6 * time.Minute, 2 * time.Hour} {
		fmt.Println(age, p.Phase(age))
	}
	fmt.Println("keep for", p.Retain())
	// Output:
	// 0s fresh
	// 1m0s while-revalidate
	// 6m0s if-error
	// 2h0m0s expired
	// keep for 1h6m0s
}

func ExamplePolicy_Validate() {
	fmt.Println(stale.Policy{Fresh: time.Minute, IfError: -time.Hour, Jitter: 10}.Validate())
	// Output:
	// stale: Policy.IfError is -1h0m0s, must be 0 or at least 1ms
	// stale: Policy.Jitter is 10, must be from 0 to 1
}

func ExamplePolicy_Early() {
	p := stale.Policy{Fresh: time.Minute, Beta: 1}
	const cost = 5 * time.Second // what the last computation took
	u := 0.1                     // 1 - rand.Float64(), in earnest: a head start of 11.5 s
	fmt.Println(p.Early(40*time.Second, cost, u))
	fmt.Println(p.Early(50*time.Second, cost, u))
	// Output:
	// false
	// true
}

func ExamplePolicy_Spread() {
	p := stale.Policy{Fresh: time.Minute, Jitter: 0.2}
	for _, u := range []float64{0, 0.25, 0.5} { // rand.Float64(), in earnest
		fmt.Println(p.Spread(u).Fresh)
	}
	// Output:
	// 1m0s
	// 57s
	// 54s
}
