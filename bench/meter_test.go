package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

func request(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func TestRequestsAreReadInPiecesOfAnySize(t *testing.T) {
	stream := request("GET", "k") + request("SET", "k", "*1\r\n$4\r\nPING\r\n", "px", "1") + request("PING") +
		request("evalsha", "", "0") + request("GET", "k")
	for size := 1; size <= len(stream); size++ {
		var got []string
		r := requests{sent: func(name string) { got = append(got, name) }}
		for rest := stream; rest != ""; {
			n := min(size, len(rest))
			r.feed([]byte(rest[:n]))
			rest = rest[n:]
		}
		require.Equal(t, []string{"get", "set", "ping", "evalsha", "get"}, got, "in pieces of %d", size)
	}
}

func FuzzRequestsEndOnAnyBytes(f *testing.F) {
	f.Add([]byte(request("GET", "k")), 3)
	f.Add([]byte("*9999999999999999999\r\n$-1\r\n$5\r\n*-3\r\n"), 1)
	f.Fuzz(func(_ *testing.T, stream []byte, size int) {
		r := requests{sent: func(string) {}}
		for len(stream) > 0 {
			n := min(max(size, 1), len(stream))
			r.feed(stream[:n])
			stream = stream[n:]
		}
	})
}

// The meter counts what the server's own MONITOR shows.
func TestTheMeterAgreesWithMONITOR(t *testing.T) {
	server := redistest.Start(t)
	var meter Meter
	rdb := redistest.Client(t, server, func(o *redis.Options) { o.Dialer = meter.dial })
	monitor := redistest.Commands(t, server)

	ctx := t.Context()
	require.NoError(t, rdb.Set(ctx, "k", strings.Repeat("v", 100_000), 0).Err())
	require.NoError(t, rdb.Get(ctx, "k").Err())
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error { p.Incr(ctx, "n"); p.Incr(ctx, "n"); return nil })
	require.NoError(t, err)
	require.NoError(t, redis.NewScript(`return redis.call("GET", KEYS[1])`).Run(ctx, rdb, []string{"k"}).Err())
	sub := rdb.Subscribe(ctx, "news")
	_, err = sub.Receive(ctx)
	require.NoError(t, err)
	require.NoError(t, sub.Close())

	seen := monitor.Stop()
	got := meter.commands()
	assert.Equal(t, map[string]int{"set": 1, "get": 1, "incr": 2, "evalsha": 1, "eval": 1, "subscribe": 1}, got.ByName)
	assert.Equal(t, 7, got.Total)
	assert.Len(t, seen, 7, "%q", seen)
	meter.reset()
	assert.Zero(t, meter.commands().Total)
}
