package outage_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const keys = 50

// roam has callers ask replica i for all keys, over and over, until stop is called, which waits for them.
func (s *scene) roam(i int) (stop func()) {
	var gone sync.WaitGroup
	over := make(chan struct{})
	m := s.members[i]
	for n := range callers {
		gone.Go(func() {
			for k := n; s.ask(m, fmt.Sprint("key", k%keys), false); k++ {
				select {
				case <-time.After(rest / 4):
				case <-over:
					return
				}
			}
		})
	}
	return func() { close(over); gone.Wait() }
}

// total returns how often the keys were computed.
func (s *scene) total() (runs int) {
	for _, m := range s.members {
		runs += m.count()
	}
	return runs
}

func (m *member) count() (runs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.runs {
		runs += n
	}
	return runs
}

// Case 104: Redis is restarted under load, empty. No call fails; the keys are computed about once, not once for each replica and
// caller; and clients come back without a storm of connections.
func TestARestartOfRedisCostsAboutOneComputationOfEachKey(t *testing.T) {
	t.Parallel()
	s := stage(t, time.Minute, 0)
	var stops []func()
	for i := range s.members {
		stops = append(stops, s.roam(i))
	}
	require.Eventually(t, func() bool { return s.total() >= keys }, patient, rest)
	time.Sleep(time.Second)
	before, accepted := s.total(), s.proxy.Accepted()
	s.proxy.Refuse()
	require.NoError(t, s.server.Kill())
	require.NoError(t, s.server.Restart())
	require.NoError(t, s.proxy.Restore())
	time.Sleep(2 * time.Second)
	for _, stop := range stops {
		stop()
	}
	runs, opened := s.total()-before, s.proxy.Accepted()-accepted
	t.Logf("%d keys, %d computations, %d connections; %d calls, the slowest %v",
		keys, runs, opened, s.calls.Load(), time.Duration(s.slowest.Load()).Round(time.Millisecond))
	assert.LessOrEqual(t, runs, 2*keys, "once, but for those that were asked for when the replicas could not agree")
	assert.LessOrEqual(t, opened, replicas*(10*runtime.GOMAXPROCS(0)+5), "a pool for each, and a subscription")
}

// Case 104: the replicas are restarted in turn. What they come back to is in Redis.
func TestReplicasRestartedInTurnComputeNothing(t *testing.T) {
	t.Parallel()
	s := stage(t, time.Minute, patient) // a slow machine is not to be taken for a broken Redis
	for k := range keys {
		require.True(t, s.ask(s.members[0], fmt.Sprint("key", k), false))
	}
	var stops []func()
	for i := range s.members {
		stops = append(stops, s.roam(i))
	}
	computed := s.total()
	for i, stop := range stops {
		time.Sleep(200 * time.Millisecond)
		stop() // as a server does before it ends
		computed -= s.members[i].count()
		require.NoError(t, s.members[i].Close())
		s.members[i] = s.join()
		stops[i] = s.roam(i)
	}
	time.Sleep(200 * time.Millisecond)
	for _, stop := range stops {
		stop()
	}
	assert.Zero(t, s.total()-computed)
}
