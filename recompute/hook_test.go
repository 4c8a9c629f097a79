package recompute_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/recompute"
)

func TestAHookThatPanicsLeavesNoLease(t *testing.T) {
	for name, trace := range map[string]recompute.Trace{
		"acquired": {Acquired: func(time.Duration) { panic(errWork) }},
		"worked":   {Worked: func(time.Duration, error) { panic(errWork) }},
		"left":     {Left: func(time.Duration, time.Duration) { panic(errWork) }},
		"released": {Released: func(error) { panic(errWork) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := new(recompute.Local)
				g := guard(t, l, recompute.GuardOptions{Trace: trace})
				assert.PanicsWithValue(t, errWork, func() {
					_ = g.Do(t.Context(), "k", func(context.Context, *recompute.Held) error { return nil })
				})
				assert.False(t, holdsKey(t, l))
			})
		})
	}
}
