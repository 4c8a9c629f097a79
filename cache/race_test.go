//go:build race

package cache_test

const underRace = true
