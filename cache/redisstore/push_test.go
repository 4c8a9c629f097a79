package redisstore_test

import (
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/internal/redistest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// as makes a replica log in as another user.
func as[V any](user string) func(*setup[V]) {
	return func(s *setup[V]) { s.redis.Username, s.redis.Password = user, "secret" }
}

// Without the right to hear or to tell, waiting is polling: slower, and otherwise the same.
func TestWithoutTheRightToSubscribeOrPublishWaitingIsPolling(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := redistest.Client(t, s)
	for user, without := range map[string][]any{"deaf": {"-subscribe"}, "mute": {"-publish"}, "both": {"-subscribe", "-publish"}, "nochannels": {"resetchannels"}} {
		args := append([]any{"ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all"}, without...)
		require.NoError(t, admin.Do(t.Context(), args...).Err())
	}
	for _, user := range []string{"deaf", "mute", "both", "nochannels"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			a, b := enlist(t, s.Addr, as[string](user)), enlist(t, s.Addr, as[string](user))
			require.Eventually(t, func() bool { return a.tally.pushed(false) && b.tally.pushed(false) }, patience, tick, "Trace.Push does not tell")
			key := user
			v := gate("v")
			leader := ask(t, a, key, v.compute)
			<-v.running
			waiters := []<-chan answer[string]{ask(t, a, key, v.compute), ask(t, b, key, v.compute), ask(t, b, key, v.compute)}
			time.Sleep(600 * time.Millisecond)
			close(v.open)
			opened := time.Now()
			for _, c := range append(waiters, leader) {
				got := <-c
				require.NoError(t, got.err)
				assert.Equal(t, "v", got.Value)
			}
			took := time.Since(opened)
			t.Logf("%s: the last waiter had it after %v", user, took.Round(time.Millisecond))
			assert.Less(t, took, time.Second)
			assert.EqualValues(t, 1, v.runs.Load())
			// Deletions hold without being announced.
			require.NoError(t, a.Delete(t.Context(), key))
			assert.Equal(t, "w", get(t, b, key, (&origin[string]{value: "w"}).compute, cache.Computed))
		})
	}
}

// Case 33: an announcement is lost, while all others arrive. (Its sender may not publish.) The waiter still finds the
// value, when it has heard nothing for the time of a lease.
func TestALostAnnouncementIsMadeUpForByLooking(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := redistest.Client(t, s)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "mute", "on", ">secret", "~*", "&*", "+@all", "-publish").Err())
	lease := func(s *setup[string]) { s.cache.Lease = 500 * time.Millisecond }
	mute, b := enlist(t, s.Addr, as[string]("mute"), lease), join(t, s.Addr, lease)
	v := gate("v")
	leader := ask(t, mute, "k", v.compute)
	<-v.running
	waiter := ask(t, b, "k", v.compute)
	time.Sleep(50 * time.Millisecond)
	close(v.open)
	published := time.Now()
	require.NoError(t, (<-leader).err)
	got := <-waiter
	took := time.Since(published)
	require.NoError(t, got.err)
	assert.Equal(t, cache.Collapsed, got.Outcome)
	t.Logf("found after %v, lease 500ms", took.Round(time.Millisecond))
	assert.Less(t, took, 500*time.Millisecond*5/4+250*time.Millisecond)
	assert.EqualValues(t, 1, v.runs.Load())
}

// The subscription breaks while somebody waits: it comes back, and what was said meanwhile is looked up.
func TestABrokenSubscriptionIsMadeUpForByLooking(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := redistest.Client(t, s)
	replicas := fleet(t, s.Addr, 2, func(s *setup[string]) { s.cache.Lease = 10 * time.Second }) // silence would last too long
	v := gate("v")
	leader := ask(t, replicas[0], "k", v.compute)
	<-v.running
	waiter := ask(t, replicas[1], "k", v.compute)
	time.Sleep(100 * time.Millisecond)
	killed, err := admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Result()
	require.NoError(t, err)
	require.EqualValues(t, 2, killed)
	close(v.open) // published while nobody hears
	published := time.Now()
	require.NoError(t, (<-leader).err)
	got := <-waiter
	require.NoError(t, got.err)
	assert.Equal(t, cache.Collapsed, got.Outcome)
	assert.Less(t, time.Since(published), time.Second)
	assert.EqualValues(t, 1, v.runs.Load())
	for _, r := range replicas {
		assert.Eventually(t, func() bool { return r.tally.pushed(false) }, patience, tick, "told that it was broken")
		assert.Eventually(t, r.tally.hears, patience, tick, "heard again")
	}
}

// Guarantee 12: after Delete has returned on A, whoever asks on B does not board the flight from before.
func TestADeletionIsHeardByOtherReplicas(t *testing.T) {
	t.Parallel()
	replicas := fleet[string](t, serve(t).Addr, 3)
	a, b := replicas[0], replicas[1]
	v1 := gate("v1")
	before := ask(t, b, "k", v1.compute)
	<-v1.running
	require.NoError(t, a.Delete(t.Context(), "k"))
	after := ask(t, b, "k", (&origin[string]{value: "v2"}).compute)
	elsewhere := ask(t, replicas[2], "k", (&origin[string]{value: "v2"}).compute)
	time.Sleep(50 * time.Millisecond)
	close(v1.open)
	assert.Equal(t, "v1", (<-before).Value)
	assert.Equal(t, "v2", (<-after).Value)
	assert.Equal(t, "v2", (<-elsewhere).Value)
	assert.EqualValues(t, 1, v1.runs.Load())
}

// All caches on one store share its subscription, and it goes on when one of them is closed.
func TestCachesOnAStoreShareItsSubscription(t *testing.T) {
	t.Parallel()
	s := serve(t)
	admin := redistest.Client(t, s)
	r := join[string](t, s.Addr)
	subscribers := func() int64 { return admin.PubSubNumSub(ctx, "t:events").Val()["t:events"] }
	assert.EqualValues(t, 1, subscribers())
	second, err := cache.New(r.store, cache.Options[string]{Policy: minute})
	require.NoError(t, err)
	assert.EqualValues(t, 1, subscribers())
	require.NoError(t, r.Close()) // it ran the subscription
	assert.Eventually(t, func() bool { return subscribers() == 1 }, patience, tick)
	require.NoError(t, second.Close())
	assert.Eventually(t, func() bool { return subscribers() == 0 }, patience, tick)
}

// A connection that is dead without having been closed is noticed: the hub asks itself whether it can still hear. One
// that is only quiet is left alone.
func TestAHalfOpenSubscriptionIsReplaced(t *testing.T) {
	t.Parallel()
	s := serve(t)
	proxy := faultproxy.Start(t, s.Addr)
	r, b := join[string](t, proxy.Addr), join[string](t, s.Addr)
	quiet := join(t, s.Addr, func(s *setup[string]) { s.store.Prefix = prefix + ":quiet" })
	proxy.HalfOpen()
	began := time.Now()
	assert.Eventually(t, func() bool { return r.tally.pushed(false) && r.tally.hears() }, patience, tick)
	t.Logf("heard again after %v", time.Since(began).Round(time.Millisecond))
	o := origin[string]{value: "v", takes: 200 * time.Millisecond}
	herd(t, []*replica[string]{r, b}, 10, "k", "v", o.compute)
	assert.EqualValues(t, 1, o.runs.Load())
	time.Sleep(time.Until(began.Add(5 * time.Second)))
	assert.False(t, quiet.tally.pushed(false))
}
