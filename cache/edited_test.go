package cache_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
)

// edited is a page that takes 3 s to make and is edited, and so deleted, every half second. 500 readers want it all the time.
type edited struct {
	*fleet
	began time.Time

	mu      sync.Mutex
	deleted []time.Duration // when each Delete had returned
	longest time.Duration   // that a reader waited
}

// render returns when the page was made, and counts.
func (e *edited) render(ctx context.Context) (string, error) {
	e.enter()
	defer e.now.Add(-1)
	began := time.Since(e.began)
	return strconv.FormatInt(int64(began), 10), pause(ctx, 3*time.Second)
}

// read makes one call and checks that no deletion lies between what it got and its question.
func (e *edited) read(i int) {
	asked := time.Since(e.began)
	r := e.askFor(e.t.Context(), i, "k", e.render)
	require.NoError(e.t, r.err)
	n, err := strconv.ParseInt(r.Value, 10, 64)
	require.NoError(e.t, err)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.longest = max(e.longest, r.took)
	for _, at := range e.deleted {
		if made := time.Duration(n); made < at && at < asked {
			e.t.Errorf("deleted at %v: asked at %v, got what was begun at %v", at, asked, made)
		}
	}
}

// run reads and edits for a while, and stays for the last readers.
func (e *edited) run(lasts time.Duration) {
	var readers sync.WaitGroup
	for i := range 500 {
		readers.Go(func() {
			for time.Since(e.began) < lasts {
				e.read(i % len(e.replicas))
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	for time.Since(e.began) < lasts {
		time.Sleep(500 * time.Millisecond)
		require.NoError(e.t, e.replicas[0].Delete(e.t.Context(), "k"))
		e.mu.Lock()
		e.deleted = append(e.deleted, time.Since(e.began))
		e.mu.Unlock()
	}
	readers.Wait()
}

// Case 105, under our promise that what was deleted does not come back: nobody is given it, so readers wait; but for two computations
// at most, however often the page is deleted meanwhile, since each serves all of its process who asked before it began.
func TestAPageDeletedMoreOftenThanItCanBeMadeComesThroughAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &edited{fleet: newFleet(t, 1, cache.Options[string]{Policy: windows}), began: time.Now()}
		e.run(3 * time.Minute)
		assert.LessOrEqual(t, e.longest, 6*time.Second)
		assert.EqualValues(t, 1, e.most.Load(), "computations at once")
		assert.LessOrEqual(t, e.runs.Load(), int64(3*60/3+2), "and no others")
	})
}

// Across processes the one that has the lease is served; who else is, the lease decides.
func TestAPageDeletedOftenIsMadeByOneProcessAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &edited{fleet: newFleet(t, 4, cache.Options[string]{Policy: windows}), began: time.Now()}
		e.run(20 * time.Second) // then the waiting has an end
		assert.EqualValues(t, 1, e.most.Load(), "computations at once")
	})
}
