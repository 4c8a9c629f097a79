package outage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outage is what happens to Redis, and how that ends.
type outage struct {
	begin, end func(*scene) error
	meanwhile  func(*scene) // what else is done once it has begun; may be nil
	most       int          // computations of "cold" on a replica; 0: as many as it takes when it can keep the value
}

func TestAnOutageOfRedisShowsInNoCall(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]outage{
		"connections are refused": {
			begin: func(s *scene) error { s.proxy.Refuse(); return nil },
			end:   func(s *scene) error { return s.proxy.Restore() },
		},
		"it accepts and never answers": {
			begin: func(s *scene) error { s.proxy.Silence(); return nil },
			end:   func(s *scene) error { return s.proxy.Restore() },
		},
		"packets vanish": {
			begin: func(s *scene) error { return s.proxy.BlackHole() },
			end:   func(s *scene) error { return s.proxy.Restore() },
		},
		"a firewall forgets all connections": {
			begin: func(s *scene) error { s.proxy.HalfOpen(); return nil },
			end:   func(*scene) error { return nil }, // new ones work
		},
		"SIGSTOP, SIGCONT": {
			begin: func(s *scene) error { return s.server.Pause() },
			end:   func(s *scene) error { return s.server.Resume() },
		},
		"kill -9, back empty": {
			begin: func(s *scene) error { s.proxy.Refuse(); return s.server.Kill() }, // the port of a dead server refuses
			end: func(s *scene) error {
				if err := s.server.Restart(); err != nil {
					return err
				}
				return s.proxy.Restore()
			},
		},
		"CLIENT PAUSE": {
			begin: func(s *scene) error { return s.admin.Do(ctx, "CLIENT", "PAUSE", lasts.Milliseconds(), "ALL").Err() },
			end:   func(s *scene) error { return s.admin.Ping(ctx).Err() }, // is answered once it is over
		},
		"maxmemory, noeviction": {
			begin: func(s *scene) error { return s.admin.ConfigSet(ctx, "maxmemory", "1").Err() },
			end:   func(s *scene) error { return s.admin.ConfigSet(ctx, "maxmemory", "0").Err() },
		},
		"no writable primary": {
			begin: func(s *scene) error { return s.admin.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err() },
			end:   func(s *scene) error { return s.admin.Do(ctx, "REPLICAOF", "NO", "ONE").Err() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, o)
		})
	}
}

// play goes through an outage under load. No call fails; none that has a value at hand waits for a computation; a replica computes
// a key no more often than if it had it to itself; and afterwards the replicas share as before.
func play(t *testing.T, o outage) {
	s := stage(t, fresh, 0)
	for _, m := range s.members { // each has seen it
		require.True(t, s.ask(m, "warm", false))
	}
	s.call("warm", true)
	time.Sleep(takes)
	before := s.computed("warm")
	began := time.Now()
	require.NoError(t, o.begin(s))
	s.call("cold", false)
	if o.meanwhile != nil {
		o.meanwhile(s)
	}
	time.Sleep(time.Until(began.Add(lasts)))
	warm, cold := s.computed("warm"), s.computed("cold")
	lasted := time.Since(began)
	s.over.Store(true)
	require.NoError(t, o.end(s))
	shared := s.shared()
	s.end()

	slowest := time.Duration(s.slowest.Load())
	t.Logf("%d calls, the slowest %v; computed: warm %v before, then %v, cold %v; shared again after %v",
		s.calls.Load(), slowest.Round(time.Millisecond), before, warm, cold, shared.Round(time.Millisecond))
	most := 1 + int(lasted/fresh) // one in each lifetime begun; 3 where the machine has time, see bench
	for i := range s.members {
		assert.LessOrEqual(t, warm[i]-before[i], most, "replica %d, warm", i)
		assert.LessOrEqual(t, cold[i], max(most, o.most), "replica %d, cold", i)
	}
	assert.Zero(t, s.waited.Load(), "calls that waited for a computation though there was a value")
	// A lease whose release was lost, a few steps and a computation; where no number can be had, for each replica in turn.
	assert.Less(t, slowest, 8*time.Second)
	assert.Less(t, shared, 3*time.Second, "1.2 s where the machine has time")
}
