package redislock_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// entitledTo connects to the servers as users who have these rights, each its own.
func (e *ensemble) entitledTo(t *testing.T, rights ...[]string) *redislock.Quorum {
	t.Helper()
	var clients []redis.UniversalClient
	for i, admin := range e.outside {
		clients = append(clients, entitled(t, admin, rights[i]))
	}
	q, err := redislock.NewQuorum(clients, patience)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// livesOf takes all the steps there are with leases of a quorum, and says what came of each.
func (e *ensemble) livesOf(t *testing.T, admin, q *redislock.Quorum) map[string]error {
	t.Helper()
	happened := make(map[string]error)
	key, held := rand.Text(), rand.Text() // what users before could not do yet may be done now that they have other rights
	for _, c := range e.outside {
		require.NoError(t, c.FlushAll(t.Context()).Err())
	}
	e.found(t, "bellwether")
	for range 2 { // with scripts that are loaded, too
		lease, err := q.Acquire(t.Context(), key, long)
		happened["acquire"] = errors.Join(happened["acquire"], err)
		if err == nil {
			e.settle(t, key)
			happened["extend"] = errors.Join(happened["extend"], lease.Extend(t.Context(), long))
			happened["release"] = errors.Join(happened["release"], lease.Release(t.Context()))
		}
		if happened["release"] == nil {
			happened["left"] = errors.Join(happened["left"], e.left(t, key))
		}
		for _, c := range e.outside {
			require.NoError(t, c.Del(t.Context(), "bellwether:lease:{"+key+"}").Err())
		}
	}
	holder := acquire(t, admin, held, long)
	e.await(t, held, len(e.servers))
	if _, err := q.Acquire(t.Context(), held, long); !errors.Is(err, recompute.ErrHeld) {
		happened["refusal"] = errors.Join(err, errors.New("not refused"))
	}
	happened["waking"] = e.heard(t, q, held, func() { require.NoError(t, holder.Release(t.Context())) })
	if happened["release"] == nil && happened["acquire"] == nil {
		lease, err := q.Acquire(t.Context(), held, long)
		require.NoError(t, err)
		e.settle(t, held)
		happened["telling"] = e.heard(t, admin, held, func() { require.NoError(t, lease.Release(t.Context())) })
	}
	return happened
}

// settle waits for the answer of a server that the lease did not wait for: an extension or a release may need it.
func (e *ensemble) settle(t *testing.T, key string) {
	t.Helper()
	for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until) && e.holders(t, key) < len(e.servers); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
}

// left says on how many servers a lease is left that was released or not granted: a minority need not have answered.
func (e *ensemble) left(t *testing.T, key string) error {
	t.Helper()
	for until := time.Now().Add(soon); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if e.holders(t, key) == 0 {
			return nil
		}
	}
	return errLeft
}

var errLeft = errors.New("a lease is left")

// heard releases once a quorum listens, and says whether it heard.
func (e *ensemble) heard(t *testing.T, q *redislock.Quorum, key string, release func()) error {
	t.Helper()
	heard, stop := q.Wake(t.Context(), key)
	defer stop()
	listening := func() (n int64) {
		for _, c := range e.outside {
			n += c.PubSubNumSub(t.Context(), "bellwether:leases").Val()["bellwether:leases"]
		}
		return n
	}
	for until := time.Now().Add(500 * time.Millisecond); time.Now().Before(until) && listening() < int64(len(e.servers)); {
		time.Sleep(5 * time.Millisecond)
	}
	for quiet := false; !quiet; { // it says so when it can hear
		select {
		case <-heard:
		case <-time.After(100 * time.Millisecond):
			quiet = true
		}
	}
	release()
	select {
	case <-heard:
		return nil
	case <-time.After(500 * time.Millisecond):
		return errAsleep
	}
}

func TestTheRightsForAQuorumAreEnoughAndEachIsNeeded(t *testing.T) {
	t.Parallel()
	needs := map[string]string{ // what does not work if no server grants it
		"+eval": "acquire", "+evalsha": "acquire", "+mget": "acquire", "+set": "acquire", "+time": "acquire",
		"+pexpire": "extend", "+del": "release", "+pttl": "refusal", "+subscribe": "waking", "+publish": "telling",
		"+info":         "", // a server that restarts with its data is not noticed
		"~bellwether:*": "acquire", "&bellwether:*": "waking",
	}
	rights := strings.Fields(redislock.QuorumRights)
	require.Len(t, needs, len(rights))
	e := startEnsemble(t, 3)
	admin := e.open(t, patience)
	for step, err := range e.livesOf(t, admin, e.entitledTo(t, rights, rights, rights)) {
		require.NoError(t, err, step)
	}
	for i, right := range rights {
		fewer := slices.Delete(slices.Clone(rights), i, i+1)
		t.Run("no server grants "+right, func(t *testing.T) {
			happened := e.livesOf(t, admin, e.entitledTo(t, fewer, fewer, fewer))
			for step, err := range happened {
				assert.NotErrorIs(t, err, recompute.ErrHeld, step)
				assert.NotErrorIs(t, err, recompute.ErrLost, step)
			}
			broken := needs[right]
			if broken == "" {
				assert.NoError(t, errors.Join(happened["acquire"], happened["extend"], happened["release"]))
				return
			}
			require.Error(t, happened[broken])
			if err := happened[broken]; err != errAsleep {
				assert.ErrorContains(t, err, "redislock.QuorumRights", "where to look")
				assert.NotContains(t, err.Error(), "redislock.Rights")
				assert.ErrorIs(t, err, redislock.ErrQuorum)
			}
			assert.NoError(t, happened["left"])
		})
		t.Run("one server does not grant "+right, func(t *testing.T) {
			happened := e.livesOf(t, admin, e.entitledTo(t, rights, fewer, rights))
			if right == "+del" { // on that server it ends by itself
				assert.ErrorIs(t, happened["left"], errLeft)
				delete(happened, "left")
			}
			for step, err := range happened {
				assert.NoError(t, err, step)
			}
		})
	}
}
