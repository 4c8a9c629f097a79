package middleware_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

func TestOptionsThatCannotWorkPanicAtConstruction(t *testing.T) {
	c, err := cache.New(cache.NewMemory(), cache.Options[middleware.Response]{Policy: stale.Policy{Fresh: time.Minute}})
	require.NoError(t, err)
	defer c.Close()
	for want, o := range map[string]middleware.Options{
		"middleware: Options.Policy: stale: Policy.Fresh is -1ns, must be at least 1ms":                                                       {Policy: stale.Policy{Fresh: -1}},
		"middleware: Options.Policy: stale: Policy.WhileRevalidate is -1ns, must be 0 or at least 1ms":                                        {Policy: stale.Policy{WhileRevalidate: -1}},
		"middleware: Options.MaxBody is -1, must be positive (0: 1048576)":                                                                    {MaxBody: -1},
		"middleware: Options.Statuses has 206, must be from 200 to 599 and neither 206 nor 304":                                               {Statuses: map[int]time.Duration{206: 1}},
		"middleware: Options.Statuses[404] is -1ns, must be 0 or at least 1ms; a bare number means nanoseconds":                               {Statuses: map[int]time.Duration{404: -1}},
		"middleware: Options.Policy: stale: Policy.Fresh is 60ns, must be at least 1ms; a bare number means nanoseconds":                      {Policy: stale.Policy{Fresh: 60}},
		"middleware: Options.Statuses[404] is 60ns, must be 0 or at least 1ms; a bare number means nanoseconds":                               {Statuses: map[int]time.Duration{404: 60}},
		`middleware: Options.Drop has "a b", must be names of header fields`:                                                                  {Drop: []string{"a b"}},
		`middleware: Options.Targeted has "", must be names of header fields`:                                                                 {Targeted: []string{""}},
		"middleware: Key.IgnoreQuery and Key.AllowQuery are both set: set one of them":                                                        {Key: middleware.Key{IgnoreQuery: []string{"a"}, AllowQuery: []string{"b"}}},
		"middleware: Options.MaxBody is -2, must be positive (0: 1048576)\nmiddleware: Options.Drop has \"\", must be names of header fields": {MaxBody: -2, Drop: []string{""}},
	} {
		assert.PanicsWithValue(t, want, func() { middleware.New(c, o) })
	}
	assert.PanicsWithValue(t, "middleware: the cache is nil: give one from cache.New[middleware.Response]",
		func() { middleware.New(nil, middleware.Options{}) })
	assert.NotPanics(t, func() { middleware.New(c, middleware.Options{Policy: stale.Policy{IfError: -1}}) }, "off")
}
