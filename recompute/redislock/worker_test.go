package redislock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/internal/child"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// workerEnv holds the address of the server in a process that is a worker: this test binary, run again. It does what it reads, and
// tells what happens, each in one line:
//
//	do key 300ms     work that takes 300 ms, or until its context ends, then writes with its fence; try is the same with Try
//	→ running fence
//	→ lost cause     its context has ended
//	→ wrote true     or false: the resource has seen a higher fence
//	→ done err       or skipped
const workerEnv = "REDISLOCK_WORKER"

const workerTTL = time.Second

// resource keeps the highest fence it has seen, and refuses lower ones. KEYS the resource; ARGV fence.
var resource = redis.NewScript(`
if tonumber(redis.call('GET', KEYS[1]) or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 600)
return 1`)

// work is the worker's side.
func work() int {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv(workerEnv)})
	defer rdb.Close()
	locker, err := redislock.New(rdb, redislock.Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer locker.Close()
	g, err := recompute.NewGuard(locker, recompute.GuardOptions{TTL: workerTTL, Wait: 5 * time.Second})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		takes, err := time.ParseDuration(words[2])
		if err != nil {
			fmt.Println(err)
			return 1
		}
		job := func(ctx context.Context, h *recompute.Held) error {
			fence, _ := h.Fence()
			fmt.Println("running", fence)
			select {
			case <-time.After(takes):
			case <-ctx.Done():
				fmt.Println("lost", context.Cause(ctx), h.Left())
			}
			wrote, err := resource.Run(context.Background(), rdb, []string{"resource"}, fence).Bool()
			fmt.Println("wrote", wrote, err)
			return ctx.Err()
		}
		if words[0] == "do" {
			fmt.Println("done", g.Do(context.Background(), words[1], job))
		} else if ran, err := g.Try(context.Background(), words[1], job); !ran && err == nil {
			fmt.Println("skipped")
		} else {
			fmt.Println("done", err)
		}
	}
	return 0
}

// hire starts a worker. It ends with the test, whatever state it is in.
func hire(t *testing.T, addr string) *child.Process {
	t.Helper()
	return child.Start(t, workerEnv+"="+addr)
}
