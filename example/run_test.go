package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

var quick = []string{"-once", "-clients", "3", "-steady", "1s"}

func TestOnceOnMiniredis(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	shows(t, quick, "embedded miniredis")
}

func TestOnceOnRedis(t *testing.T) {
	server := redistest.Start(t)
	t.Setenv("REDIS_URL", "redis://"+server.Addr+"/3")
	shows(t, quick, "Redis at "+server.Addr)
}

// shows runs the demonstration, which itself checks that all is as promised.
func shows(t *testing.T, args []string, server string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), args, &stdout, &stderr)
	t.Logf("\n%s", stdout.String())
	require.NoError(t, err)
	assert.Contains(t, stdout.String(), server)
	for _, title := range []string{
		"Cold stampede", "Runs out under load", "Kills a holder", "Deletes under computation", "Asks for what isn't there",
	} {
		assert.Contains(t, stdout.String(), title)
	}
	assert.Contains(t, stderr.String(), "… cold stampede, Bellwether", "progress in plain lines, where there is no terminal")
}

// output is what a run has printed so far.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func TestServesOnUntilInterrupted(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	ctx, interrupt := context.WithCancel(t.Context())
	var stdout output
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, quick[1:], &stdout, io.Discard) }()
	require.Eventually(t, func() bool { return strings.Contains(stdout.String(), "Ctrl-C") }, 4*time.Minute, 10*time.Millisecond)

	for _, url := range regexp.MustCompile(`(?m)^ +(http://\S+/)$`).FindAllStringSubmatch(stdout.String(), -1) {
		answer, err := http.Get(url[1] + "pkg/fmt")
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, http.StatusOK, answer.StatusCode)
	}
	interrupt()
	assert.NoError(t, <-ended)
}

func TestArguments(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	for args, want := range map[string]string{
		"-clients 0":                   "-clients 0: must be 1 to 1000",
		"-steady 1ms":                  "-steady 1ms: must be 1s to 1h",
		"extra":                        `unexpected argument "extra"`,
		"-nonsense":                    "flag provided but not defined",
		"-goroot /no/such/toolchain":   "docs: open the library",
		"-redis 127.0.0.1:1":           "no answer from Redis",
		"-addr 0.0.0.0:0":              "not a loopback address",
		"-addr 127.0.0.1:0 -redis a:b": "no answer from Redis at a:b",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		assert.ErrorContains(t, err, want, args)
	}
	assert.ErrorIs(t, run(t.Context(), []string{"-h"}, io.Discard, io.Discard), flag.ErrHelp)
}
