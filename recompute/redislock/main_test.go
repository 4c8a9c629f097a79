package redislock_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

const (
	long   = time.Minute
	budget = redislock.DefaultBudget
	slack  = 80 * time.Millisecond // how much later than its time a call may return
	soon   = 2 * time.Second       // for what happens behind a call
)

func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		os.Exit(work())
	}
	logging.Disable() // tests break connections on purpose
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // most tests here wait most of the time
		panic(err)
	}
	// What undoes an acquire goes on for a while after the test that took its server away.
	const here = "github.com/bellwether-cache/bellwether/recompute/redislock."
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(here+"(*lease).takeBack.func1"), goleak.IgnoreAnyFunction(here+"(*share).giveBack.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")) // it ends up to a second after Close
}

// clients are the kinds of client that users have.
var clients = map[string]func(*redis.Options){
	"default client":                func(*redis.Options) {},
	"client that keeps deadlines":   func(o *redis.Options) { o.ContextTimeoutEnabled = true },
	"client that never tries again": func(o *redis.Options) { o.MaxRetries, o.DialerRetries = -1, 1 },
}

// to connects to an address for the time of the test.
func to(t testing.TB, addr string, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	return redistest.Client(t, &redisserver.Server{Addr: addr}, change...)
}

// acquire gets the lease of key. On a busy machine even a healthy server can be late for a budget: that is not what is tested.
func acquire(t testing.TB, l recompute.Locker, key string, ttl time.Duration) (lease recompute.Lease) {
	t.Helper()
	insist(t, func() (err error) {
		lease, err = l.Acquire(t.Context(), key, ttl)
		return err
	})
	return lease
}

// insist does f again and again while it is late, and asserts that it works in the end.
func insist(t testing.TB, f func() error) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := f()
		late := errors.Is(err, redislock.ErrBudget) || errors.Is(err, redislock.ErrOpen)
		if !late || time.Now().After(deadline) {
			require.NoError(t, err)
			return
		}
	}
}

// warm has the server learn all scripts, so that each step is one EVALSHA from then on.
func warm(t testing.TB, l recompute.Locker) {
	t.Helper()
	lease := acquire(t, l, "warm", long)
	insist(t, func() error { return lease.Extend(t.Context(), long) })
	insist(t, func() error {
		if err := lease.Release(t.Context()); !errors.Is(err, recompute.ErrLost) { // by then an earlier try has done it
			return err
		}
		return nil
	})
}

// script is how a step shows on the wire.
func script(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name + ".lua")
	require.NoError(t, err)
	return redis.NewScript(string(text)).Hash()
}

// locks returns the keys that leases are, which all must have a time to live.
func locks(t testing.TB, c redis.Cmdable) (keys []string) {
	t.Helper()
	for key, ttl := range redistest.Keys(t, c) {
		assert.GreaterOrEqual(t, ttl, time.Duration(0), "TTL of %q", key)
		if strings.HasSuffix(key, "}") && !strings.Contains(key, ":fence") { // a mark has a token there
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// noLock asserts that no lease is left soon, nor comes later.
func noLock(t testing.TB, c redis.Cmdable, later time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool { return len(locks(t, c)) == 0 }, soon, 5*time.Millisecond, "a lease is left")
	for until := time.Now().Add(later); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		require.Empty(t, locks(t, c), "a lease came late")
	}
}

// trouble is a server behind a proxy, a client that goes through it and one that goes past it.
type trouble struct {
	*redisserver.Server
	proxy           *faultproxy.Proxy
	inside, outside *redis.Client
}

func through(t testing.TB, change ...func(*redis.Options)) trouble {
	t.Helper()
	s := redistest.Start(t)
	p := faultproxy.Start(t, s.Addr)
	return trouble{s, p, to(t, p.Addr, change...), redistest.Client(t, s)}
}

// must returns a locker with options that work.
func must(c redis.UniversalClient, o redislock.Options) *redislock.Locker {
	l, err := redislock.New(c, o)
	if err != nil {
		panic(err)
	}
	return l
}

// fenced returns a locker whose leases have a number, on a busy machine, for the time of the test.
func fenced(t testing.TB, c redis.UniversalClient) *redislock.Locker {
	t.Helper()
	l := must(c, redislock.Options{Budget: 5 * time.Second})
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// newLocker returns a locker with the default budget; patient is for tests of other things, on a busy machine.
func newLocker(c redis.UniversalClient) *redislock.Locker {
	return must(c, redislock.Options{Unfenced: true})
}

func patient(c redis.UniversalClient) *redislock.Locker {
	return must(c, redislock.Options{Budget: 5 * time.Second, Channel: channel, Unfenced: true})
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// timely asserts that f takes no longer than d, give or take slack. A busy machine has four tries.
func timely(t testing.TB, d time.Duration, f func()) {
	t.Helper()
	var took []time.Duration
	for range 4 {
		began := time.Now()
		f()
		took = append(took, time.Since(began))
		if slices.Min(took) <= d+slack {
			return
		}
	}
	t.Errorf("took %v, should take %v", took, d)
}
