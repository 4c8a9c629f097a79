package middleware_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/middleware"
)

func TestKeysThatAreForNobodyElseAreRememberedForAShortTimeInBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p middleware.Passes
		assert.False(t, middleware.HasPass(&p, "a"))
		middleware.AddPass(&p, "a")
		assert.True(t, middleware.HasPass(&p, "a"))
		time.Sleep(5 * time.Second)
		assert.False(t, middleware.HasPass(&p, "a"))
		for i := range 3 * middleware.MostPasses {
			middleware.AddPass(&p, fmt.Sprint(i))
			assert.LessOrEqual(t, p.Len(), middleware.MostPasses)
		}
		assert.True(t, middleware.HasPass(&p, fmt.Sprint(3*middleware.MostPasses-1)), "the last")
	})
}
