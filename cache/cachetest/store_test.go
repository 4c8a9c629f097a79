package cachetest_test

import (
	"testing"
	"testing/synctest"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/cachetest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	cachetest.TestStore(t, synctest.Test, func(*testing.T) cache.Store { return cache.NewMemory() })
}

func TestMemoryKeepsTheContractInRealTime(t *testing.T) {
	store := cache.NewMemory()
	cachetest.TestStore(t, nil, func(*testing.T) cache.Store { return store })
}
