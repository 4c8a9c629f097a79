package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestABadFlagIsNamedWithItsValueAndWhatIsAllowed(t *testing.T) {
	for args, want := range map[string][]string{
		"-replicas 0":             {"-replicas", `"0"`, "from 1 to 50"},
		"-replicas many":          {"-replicas", `"many"`, "from 1 to 50"},
		"-callers 501":            {"-callers", `"501"`, "from 1 to 500"},
		"-compute 1h":             {"-compute", `"1h"`, "from 1ms to 10s"},
		"-compute 537":            {"-compute", `"537"`, "from 1ms to 10s"},
		"-keys -1":                {"-keys", `"-1"`, "from 1 to 10000"},
		"-runs 21":                {"-runs", `"21"`, "from 1 to 20"},
		"-seed x":                 {"-seed", `"x"`, "whole number from 0"},
		"-arms naive,best":        {"-arms", `"naive,best"`, "naive,singleflight,bellwether"},
		"-arms naive,naive":       {"-arms", `"naive,naive"`, "each once"},
		"-scenarios cold":         {"-scenarios", `"cold"`, "cold-herd,cold-keys,hot-key,dead-holder,failing,http-herd"},
		"-redis 6379":             {"-redis", `"6379"`, "host:port"},
		"-redis 10.0.0.1:6379":    {"-redis", `"10.0.0.1:6379"`, "stays on this machine"},
		"-redis example.org:6379": {"-redis", `"example.org:6379"`, "localhost"},
		"-redis :6379":            {"-redis", `":6379"`, "localhost"},
		"-redis 127.0.0.1:x":      {"-redis", `"127.0.0.1:x"`, "port from 1 to 65535"},
		"-speed 11":               {"-speed"},
		"now":                     {`"now"`, "flags only"},
	} {
		t.Run(args, func(t *testing.T) {
			code, out, errOut := bench(t.Context(), strings.Fields(args)...)
			assert.Equal(t, 2, code)
			assert.Empty(t, out)
			assert.Equal(t, 1, strings.Count(errOut, "\n"), "one line, not the usage: %s", errOut)
			for _, s := range want {
				assert.Contains(t, errOut, s)
			}
		})
	}
}

func TestLoopbackAddressesAreTaken(t *testing.T) {
	for _, addr := range []string{"localhost:6379", "127.0.0.1:6379", "127.1.2.3:1", "[::1]:65535"} {
		p, err := parseParams([]string{"-redis", addr}, t.Output())
		require.NoError(t, err)
		assert.Equal(t, addr, p.Redis)
	}
}

func TestQuickLeavesAloneWhatWasGiven(t *testing.T) {
	p, err := parseParams([]string{"-callers", "33", "-quick", "-compute", "7ms"}, t.Output())
	require.NoError(t, err)
	assert.Equal(t, 33, p.Callers)
	assert.Equal(t, 7*time.Millisecond, p.Compute)
	assert.Equal(t, 3, p.Replicas)
}

func TestHelpListsFlagsScenariosAndArms(t *testing.T) {
	code, out, errOut := bench(t.Context(), "-h")
	assert.Equal(t, 0, code)
	for _, s := range []string{"-redis", "(default 10)", "537ms", "dead-holder", "singleflight", "1 to 500"} {
		assert.Contains(t, out+errOut, s)
	}
}

func TestAServerThatDoesNotAnswerIsNamed(t *testing.T) {
	code, _, errOut := bench(t.Context(), "-redis", "127.0.0.1:1", "-quick")
	assert.Equal(t, 1, code)
	assert.Contains(t, errOut, "no Redis server answers at 127.0.0.1:1")
}

func TestWithoutRedisItSaysHowToGetOne(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	code, _, errOut := bench(t.Context(), "-quick")
	assert.Equal(t, 1, code)
	assert.Contains(t, errOut, "apt-get install redis-server")
	assert.Contains(t, errOut, "-redis")
}
