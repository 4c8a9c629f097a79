package redisstore_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redisserver"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runs returns how often workers have computed key.
func runs(t *testing.T, s *redisserver.Server, key string) int {
	t.Helper()
	n, err := redistest.Client(t, s).Get(t.Context(), "runs:"+key).Int()
	require.NoError(t, err)
	return n
}

func TestTwoProcessesComputeAColdKeyOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := hire(t, s.Addr), hire(t, s.Addr)
	for _, key := range []string{"k1", "k2", "k3"} {
		a.call(50, key, "v", 300*time.Millisecond)
		b.call(50, key, "v", 300*time.Millisecond)
		got := a.answers(50, key)
		for answer, n := range b.answers(50, key) {
			got[answer] += n
		}
		assert.Equal(t, map[string]int{"v computed": 1, "v collapsed": 99}, got)
		assert.Equal(t, 1, runs(t, s, key))
	}
}

// Case 29(b): the winner dies; one of the losers takes over when the lease has run out.
func TestAKilledHolderIsTakenOverByOneWaiter(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b, c := hire(t, s.Addr), hire(t, s.Addr), hire(t, s.Addr)
	a.call(10, "k", "v1", time.Minute)
	a.expect("computing k")
	b.call(50, "k", "v2", 100*time.Millisecond)
	c.call(50, "k", "v2", 100*time.Millisecond)
	time.Sleep(workerLease / 2) // it has been renewed: its holder was alive until the end
	killed := time.Now()
	a.Signal(syscall.SIGKILL)

	got := b.answers(50, "k")
	for answer, n := range c.answers(50, "k") {
		got[answer] += n
	}
	took := time.Since(killed)
	t.Logf("taken over and served %v after the kill, lease %v", took.Round(time.Millisecond), workerLease)
	assert.Less(t, took, workerLease+time.Second)
	assert.Equal(t, map[string]int{"v2 computed": 1, "v2 collapsed": 99}, got)
	assert.Equal(t, 2, runs(t, s, "k"))
}

// Case 29(a): those who have something stale do not wait for the dead.
func TestBesideADeadHolderTheStaleValueIsServedAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := hire(t, s.Addr), hire(t, s.Addr)
	a.call(1, "k", "v1", 0)
	a.expect("got k v1")
	time.Sleep(750 * time.Millisecond) // past its freshness
	a.call(1, "k", "v2", time.Minute)
	a.expect("computing k")
	a.Signal(syscall.SIGKILL)

	killed := time.Now()
	b.call(50, "k", "v3", 0)
	assert.Equal(t, map[string]int{"v1 stale": 50}, b.answers(50, "k"))
	assert.Less(t, time.Since(killed), workerLease/2)

	time.Sleep(workerLease)
	b.call(1, "k", "v3", 0)
	assert.Equal(t, map[string]int{"v3 computed": 1}, b.answers(1, "k"))
}

// Cases 18, guarantees 10 and 11: a paused holder is superseded, and its late result replaces nothing.
func TestAHolderPausedPastItsLeaseReplacesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	a, b := hire(t, s.Addr), hire(t, s.Addr)
	a.call(1, "k", "v1", 1500*time.Millisecond)
	a.expect("computing k")
	a.call(4, "k", "v1", 1500*time.Millisecond)
	time.Sleep(50 * time.Millisecond) // they are aboard
	a.Signal(syscall.SIGSTOP)
	paused := time.Now()

	b.call(5, "k", "v2", 0)
	assert.Equal(t, map[string]int{"v2 computed": 1, "v2 collapsed": 4}, b.answers(5, "k"))
	assert.Less(t, time.Since(paused), workerLease+time.Second)

	// Now a third computes, and a wakes up beside it: neither its result nor its release touches the other's.
	time.Sleep(time.Until(paused.Add(2 * time.Second)))
	r := join[string](t, s.Addr)
	v3 := gate("v3")
	asked := ask(t, r, "k", v3.compute)
	<-v3.running
	a.Signal(syscall.SIGCONT)
	a.expect("overtaken")
	assert.Contains(t, []string{"v1 computed", "v3 computed"}, a.expect("got k"))
	assert.Len(t, leases(r.rdb), 1, "the successor's lease")
	close(v3.open)
	assert.Equal(t, "v3", (<-asked).Value)
	assert.Equal(t, "v3", get(t, r, "k", never[string](t), cache.Hit))
	for range 4 {
		assert.NotContains(t, a.expect("got k"), "v1", "only the one who computed it may get it")
	}
}

// A process that ends in good order leaves no lease, whatever it was doing. (serve checks that.)
func TestAProcessThatIsTerminatedUnderLoadLeavesNoLease(t *testing.T) {
	t.Parallel()
	s := serve(t)
	rdb := redistest.Client(t, s)
	for round := range 3 {
		a := hire(t, s.Addr)
		for key := range 200 {
			a.call(5, fmt.Sprint("k", key), "v", -1)
		}
		a.expect("computing")
		time.Sleep(time.Duration(round) * 20 * time.Millisecond)
		began := time.Now()
		a.Signal(syscall.SIGTERM)
		assert.Equal(t, "<nil>", closed(a))
		assert.Less(t, time.Since(began), 3*time.Second)
		for range a.Lines() { // until it has ended
		}
		assert.Empty(t, leases(rdb), "round %d", round)
	}
}

// closed reads until the worker says that it has closed, whatever its callers get meanwhile.
func closed(w *worker) string {
	for line := range w.Lines() {
		if len(line) > 6 && line[:6] == "closed" {
			return line[7:]
		}
	}
	return "never"
}

func TestCloseUnderLoadLeavesNoLease(t *testing.T) {
	t.Parallel()
	s := serve(t)
	rdb := redistest.Client(t, s)
	for round := range 10 {
		r := enlist[int](t, s.Addr)
		for key := range 300 {
			ask(t, r, fmt.Sprint(key), func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
		}
		time.Sleep(time.Duration(round) * 5 * time.Millisecond)
		require.NoError(t, r.Close())
		require.NoError(t, r.rdb.Close())
		assert.Empty(t, leases(rdb), "round %d", round)
		_, err := r.Lookup(t.Context(), "k", nil)
		require.Error(t, err)
		_, err = r.Lookup(t.Context(), "k", never[int](t))
		require.ErrorIs(t, err, cache.ErrClosed)
		require.NoError(t, r.Close(), "twice is harmless")
	}
}

// An acquire that is under way when the cache is closed must not leave a lease either, even if the client is closed right
// after.
func TestCloseDuringAnAcquireLeavesNoLease(t *testing.T) {
	t.Parallel()
	s := serve(t)
	proxy := faultproxy.Start(t, s.Addr)
	r := join[string](t, proxy.Addr)
	late := proxy.On(faultproxy.Rule{Marker: steps["acquire"], Do: faultproxy.Delay, For: 100 * time.Millisecond})
	asked := ask(t, r, "k", never[string](t))
	require.Eventually(t, func() bool { return late.Count() > 0 }, patience, tick)
	require.NoError(t, r.Close())
	require.NoError(t, r.rdb.Close())
	require.ErrorIs(t, (<-asked).err, cache.ErrClosed)
	time.Sleep(200 * time.Millisecond)
	assert.Empty(t, leases(redistest.Client(t, s)))
}
