// Package redistest hands real redis-server processes to tests, and looks at what they were sent and what they keep.
package redistest

import (
	"errors"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
)

// Start runs a redis-server for the time of the test. The args are appended to its command line.
//
// Where redis-server isn't installed the test is skipped; under CI=true it fails, so that no green run can hide what it left out.
func Start(t testing.TB, args ...string) *redisserver.Server {
	t.Helper()
	s, err := redisserver.Start(args...)
	orSkip(t, err)
	t.Cleanup(func() { stop(t, s) })
	return s
}

// Cluster runs a Redis Cluster of three primaries with a replica each for the time of the test, see [redisserver.StartCluster].
func Cluster(t testing.TB, args ...string) *redisserver.Cluster {
	t.Helper()
	c, err := redisserver.StartCluster(3, args...)
	orSkip(t, err)
	t.Cleanup(func() { stop(t, c) })
	return c
}

// Watched runs a primary, two replicas and three sentinels for the time of the test, see [redisserver.StartWatched].
func Watched(t testing.TB, args ...string) *redisserver.Watched {
	t.Helper()
	w, err := redisserver.StartWatched(args...)
	orSkip(t, err)
	t.Cleanup(func() { stop(t, w) })
	return w
}

func orSkip(t testing.TB, err error) {
	t.Helper()
	switch {
	case errors.Is(err, redisserver.ErrMissing) && os.Getenv("CI") != "true":
		t.Skip("needs a real redis-server: ", err)
	case err != nil:
		t.Fatal(err)
	}
}

func stop(t testing.TB, s interface{ Stop() error }) {
	t.Helper()
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// Client connects to the server for the time of the test. Each change is applied to its options, which are go-redis's defaults
// otherwise.
func Client(t testing.TB, s *redisserver.Server, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: s.Addr}
	for _, f := range change {
		f(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) { // the test may have closed it, to see what happens
			t.Error(err)
		}
	})
	return c
}
