package redislock_test

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// replicated is a server with a replica that is in step with it.
func replicated(t *testing.T) (main, replica *redisserver.Server) {
	t.Helper()
	main = redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(main.Addr)
	require.NoError(t, err)
	replica = redistest.Start(t, "--replicaof", host+" "+port)
	c := redistest.Client(t, main)
	require.Eventually(t, func() bool {
		require.NoError(t, c.Incr(t.Context(), "in step?").Err())
		return c.Wait(t.Context(), 1, 100*time.Millisecond).Val() == 1
	}, 20*time.Second, 10*time.Millisecond, "the replica is in step")
	require.NoError(t, c.Del(t.Context(), "in step?").Err())
	return main, replica
}

func TestALeaseThatReplicasMustHaveIsGrantedOnlyThen(t *testing.T) {
	t.Parallel()
	for name, client := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			main, replica := replicated(t)
			admin := redistest.Client(t, main)
			asking := func(n int) *redislock.Locker {
				return must(client(t, admin), redislock.Options{Budget: 3 * time.Second, Replicas: n})
			}
			l := asking(1)
			lease := acquire(t, l, "key", long)
			fence := fenceOf(t, lease)
			copied := redistest.Client(t, replica)
			assert.EqualValues(t, 1, copied.Exists(t.Context(), "bellwether:lease:{key}").Val(), "the replica has it when it is granted")
			require.NoError(t, lease.Extend(t.Context(), 2*long))
			assert.Greater(t, copied.PTTL(t.Context(), "bellwether:lease:{key}").Val(), long)

			_, err := l.Acquire(t.Context(), "key", long)
			require.ErrorIs(t, err, recompute.ErrHeld, "that needs no replica")
			_, err = asking(2).Acquire(t.Context(), "other", long)
			require.ErrorIs(t, err, redislock.ErrReplicas)
			require.ErrorContains(t, err, "1 of 2")

			require.NoError(t, replica.Pause())
			err = lease.Extend(t.Context(), long)
			require.ErrorIs(t, err, redislock.ErrReplicas)
			require.NotErrorIs(t, err, recompute.ErrLost, "it may hold all the same")
			require.NoError(t, lease.Release(t.Context()))
			_, err = l.Acquire(t.Context(), "key", long)
			require.ErrorIs(t, err, redislock.ErrReplicas)
			require.NotErrorIs(t, err, recompute.ErrHeld)
			noLock(t, admin, 0)

			require.NoError(t, replica.Resume())
			assert.Greater(t, number(t, l), fence)
		})
	}
}

func TestARefusalNeedsNoReplica(t *testing.T) {
	t.Parallel()
	for name, client := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			main, replica := replicated(t)
			admin := redistest.Client(t, main)
			l := must(client(t, admin), redislock.Options{Budget: 3 * time.Second, Replicas: 1})
			lost := acquire(t, l, "lost", long)
			acquire(t, l, "key", long)
			require.NoError(t, replica.Kill())
			_, err := l.Acquire(t.Context(), "key", long)
			require.ErrorIs(t, err, recompute.ErrHeld)
			require.NoError(t, admin.Del(t.Context(), "bellwether:lease:{lost}").Err())
			require.ErrorIs(t, lost.Extend(t.Context(), long), recompute.ErrLost)
		})
	}
}

// The server itself is well.
func TestReplicasThatDoNotAcknowledgeHoldUpNoRelease(t *testing.T) {
	t.Parallel()
	main, replica := replicated(t)
	l := must(redistest.Client(t, main), redislock.Options{Budget: 2 * time.Second, Replicas: 1})
	lease := acquire(t, l, "key", long)
	require.NoError(t, replica.Kill())
	var all sync.WaitGroup
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		all.Go(func() {
			_, err := l.Acquire(t.Context(), key, long)
			assert.Error(t, err)
		})
	}
	all.Wait()
	require.NoError(t, lease.Release(t.Context()))
}
