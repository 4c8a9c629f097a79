package redisstore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/cache/redisstore"
	"github.com/bellwether-cache/bellwether/internal/child"
	"github.com/bellwether-cache/bellwether/stale"
	"github.com/redis/go-redis/v9"
)

// workerEnv holds the address of the server in a process that is a worker: this test binary, run again. A worker does
// what it reads, and tells what happens, each in one line:
//
//	call 100 key value 300ms   100 calls at once, of a computation that takes 300 ms and heeds no context;
//	                           -1ns: it takes until its context ends
//	→ computing key            (and the counter runs:key goes up)
//	→ got key value outcome, or failed key error; for each call
//	→ overtaken                a result was refused by the fence
//	close, or SIGTERM          → closed; the worker ends. So it does when there is nothing more to read.
const workerEnv = "REDISSTORE_WORKER"

const workerLease = time.Second

// work is the worker's side.
func work() int {
	var out sync.Mutex
	say := func(words ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(words...)
	}
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv(workerEnv)})
	defer rdb.Close()
	ready := sync.OnceFunc(func() { say("ready") })
	c, err := cache.New(redisstore.New(rdb, redisstore.Options{Prefix: prefix, Budget: 5 * time.Second}), cache.Options[string]{
		Policy: stale.Policy{Fresh: 700 * time.Millisecond, IfError: time.Minute},
		Lease:  workerLease,
		Trace:  cache.Trace{Push: func(bool, error) { ready() }, Overtaken: func() { say("overtaken") }},
	})
	if err != nil {
		say(err)
		return 1
	}
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for {
		line := "close"
		select {
		case <-terminated:
		case l, ok := <-lines:
			if ok {
				line = l
			}
		}
		if line == "close" {
			say("closed", c.Close())
			return 0
		}
		var n int
		var key, value string
		var takes time.Duration
		if _, err := fmt.Sscanf(line, "call %d %s %s %v", &n, &key, &value, (*duration)(&takes)); err != nil {
			say("bad line", line, err)
			return 1
		}
		for range n {
			go func() {
				r, err := c.Lookup(context.Background(), key, func(ctx context.Context) (string, error) {
					rdb.Incr(ctx, "runs:"+key)
					say("computing", key)
					if takes < 0 {
						<-ctx.Done()
						return "", ctx.Err()
					}
					time.Sleep(takes)
					return value, nil
				})
				if err != nil {
					say("failed", key, err)
					return
				}
				say("got", key, r.Value, r.Outcome)
			}()
		}
	}
}

// duration can be scanned.
type duration time.Duration

func (d *duration) Scan(s fmt.ScanState, _ rune) error {
	token, err := s.Token(true, nil)
	if err != nil {
		return err
	}
	v, err := time.ParseDuration(string(token))
	*d = duration(v)
	return err
}

// worker is a process of a fleet.
type worker struct {
	*child.Process
	t *testing.T
}

// hire starts a worker. It ends with the test, whatever state it is in.
func hire(t *testing.T, addr string) *worker {
	t.Helper()
	return &worker{child.Start(t, workerEnv+"="+addr), t}
}

func (w *worker) call(n int, key, value string, takes time.Duration) {
	w.t.Helper()
	w.Tell("call", n, key, value, takes)
}

// expect reads until a line that begins so, and returns the rest of it.
func (w *worker) expect(begins string) string {
	w.t.Helper()
	return w.Until(begins, "failed")
}

// answers reads the answers to n calls of key and counts them by value and outcome.
func (w *worker) answers(n int, key string) map[string]int {
	w.t.Helper()
	count := make(map[string]int)
	for range n {
		count[w.expect("got "+key)]++
	}
	return count
}
