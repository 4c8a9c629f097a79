package redislock_test

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/bellwether-cache/bellwether/recompute"
)

// late is how much longer than its time something may take on a busy machine.
const late = 2 * time.Second

func TestOfTwoProcessesOneDoesTheJobAndTheOtherSkipsIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := hire(t, s.Addr), hire(t, s.Addr)
	a.Tell("try job", 500*time.Millisecond)
	a.Expect("running")
	b.Tell("try job", time.Duration(0))
	b.Expect("skipped")
	a.Expect("wrote true")
	a.Expect("done <nil>")
	b.Tell("try job", time.Duration(0))
	b.Expect("running")
}

func TestOfTwoProcessesOneWaitsForTheOther(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := hire(t, s.Addr), hire(t, s.Addr)
	last := 0
	for range 3 {
		a.Tell("do job", 200*time.Millisecond)
		before, err := strconv.Atoi(a.Expect("running"))
		require.NoError(t, err)
		b.Tell("do job", time.Duration(0))
		a.Expect("wrote true")
		a.Expect("done <nil>")
		after, err := strconv.Atoi(b.Expect("running"))
		require.NoError(t, err)
		assert.Greater(t, before, last)
		assert.Greater(t, after, before)
		last = after
		b.Expect("wrote true")
		b.Expect("done <nil>")
	}
}

func TestAKilledHolderIsFollowedWithinItsTTL(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := hire(t, s.Addr), hire(t, s.Addr)
	a.Tell("do job", time.Minute)
	a.Expect("running")
	time.Sleep(workerTTL) // it has been extended: it was alive until the end
	b.Tell("do job", time.Duration(0))
	time.Sleep(200 * time.Millisecond)
	a.Signal(syscall.SIGKILL)
	killed := time.Now()
	b.Expect("running")
	took := time.Since(killed)
	t.Logf("followed %v after the kill, TTL %v", took.Round(time.Millisecond), workerTTL)
	assert.Less(t, took, workerTTL+late)
	b.Expect("wrote true")
}

func TestAProcessWhoseWorkTakesLongerThanItsTTLKeepsTheLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := hire(t, s.Addr), hire(t, s.Addr)
	a.Tell("do job", 3*workerTTL)
	a.Expect("running")
	for until := time.Now().Add(3*workerTTL - 500*time.Millisecond); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		b.Tell("try job", time.Duration(0))
		b.Expect("skipped")
	}
	a.Expect("wrote true")
	a.Expect("done <nil>")
}

func TestAProcessWhoseExtensionsFailIsToldBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a := hire(t, s.Addr)
	a.Tell("do job", time.Minute)
	a.Expect("running")
	time.Sleep(workerTTL / 2)
	require.NoError(t, s.Pause())
	paused := time.Now()
	a.Expect("lost " + recompute.ErrLost.Error())
	assert.Less(t, time.Since(paused), workerTTL+late)
	require.NoError(t, s.Resume())
	a.Expect("wrote true") // nobody came after
	a.Expect("done recompute: the lease is lost (context canceled)")
	c := redistest.Client(t, s)
	require.Eventually(t, func() bool { return len(locks(t, c)) == 0 }, workerTTL+late, 5*time.Millisecond, "nothing comes late")
}

func TestAProcessWithoutRedisDoesNothingAndSaysSoInTime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a := hire(t, s.Addr)
	require.NoError(t, s.Kill())
	for _, call := range []string{"try", "do"} {
		asked := time.Now()
		a.Tell(call, "job", time.Duration(0))
		assert.Contains(t, a.Expect("done"), recompute.ErrNotRun.Error())
		assert.Less(t, time.Since(asked), 5*time.Second+late)
	}
	a.Tell("do job", time.Duration(0))
	time.Sleep(200 * time.Millisecond)
	require.NoError(t, s.Restart())
	a.Expect("running") // it was waiting for Redis
	a.Expect("wrote true")
	a.Expect("done <nil>")
}

// Three failures in one: a paused client, a release with a token that is no longer the holder's, a fence that is too old.
func TestAProcessPausedPastItsTTLIsToldAtOnceAndHarmsNobody(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := redistest.Client(t, s)
	a, b := hire(t, s.Addr), hire(t, s.Addr)
	a.Tell("do job", time.Minute)
	a.Expect("running")
	a.Signal(syscall.SIGSTOP)
	paused := time.Now()

	b.Tell("do job", 1500*time.Millisecond)
	b.Expect("running")
	assert.Less(t, time.Since(paused), workerTTL+late)
	b.Expect("wrote true")
	b.Expect("done <nil>")
	b.Tell("do job", time.Minute)
	b.Expect("running")
	token := c.Get(t.Context(), "bellwether:lease:{job}").Val()

	a.Signal(syscall.SIGCONT)
	resumed := time.Now()
	a.Expect("lost " + recompute.ErrLost.Error() + " 0s")
	assert.Less(t, time.Since(resumed), late)
	a.Expect("wrote false") // the resource has seen the successor's
	a.Expect("done recompute: the lease is lost")
	assert.Equal(t, token, c.Get(t.Context(), "bellwether:lease:{job}").Val(), "and the successor keeps its lease")
}
