package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
	"github.com/stretchr/testify/assert"
)

// crowd is callers on every replica that read rows of a source all the time, and writers that change rows and then delete, while
// servers fail. Every call is checked: no error, and nothing that was deleted before it was asked for.
type crowd struct {
	t        *testing.T
	replicas []*replica[int64]
	rows     map[string]*row
	ended    context.Context
	end      context.CancelFunc
	wg       sync.WaitGroup

	// era is odd while what a server has confirmed may be lost with it, or there may be two that think the keys are theirs.
	era atomic.Int64
	// Where last known values are kept, one may stand in for the answer of a server that fails or is late, flagged as stale, though
	// another replica has reached the server and deleted it there: announcements come behind, or not at all. So the first replica
	// keeps none, and what it returns is checked without exception.
	standIns atomic.Int64
	longest  atomic.Int64 // call, in ns

	reads, deletions, refused, waived atomic.Int64
}

// row is a row of the source. The version only grows. deleted is the highest one as of which a Delete has returned, kept the
// highest whose deletion other servers have too. Of the first replica's calls that were asked, missed counts those for which
// the server was not asked: that takes no time, while one that is late on a busy machine does.
type row struct{ version, deleted, kept, asked, missed atomic.Int64 }

// gather starts a crowd on keys that change and on those that do not. It ends with the test, or when dismissed.
func gather(t *testing.T, replicas []*replica[int64], changing, still []string) *crowd {
	c := &crowd{t: t, replicas: replicas, rows: make(map[string]*row)}
	c.ended, c.end = context.WithCancel(t.Context())
	t.Cleanup(c.dismiss)
	for _, key := range slices.Concat(changing, still) {
		c.rows[key] = new(row)
	}
	for _, key := range changing {
		row := c.rows[key]
		c.wg.Go(func() { c.change(key, row) })
	}
	for key, row := range c.rows {
		for _, r := range replicas {
			c.wg.Go(func() { c.read(r, key, row) })
		}
	}
	return c
}

func (c *crowd) dismiss() {
	c.end()
	c.wg.Wait()
}

func (c *crowd) read(r *replica[int64], key string, row *row) {
	compute := func(context.Context) (int64, error) {
		v := row.version.Load()
		time.Sleep(rand.N(20 * time.Millisecond))
		return v, nil
	}
	for c.ended.Err() == nil {
		era, floor, kept := c.era.Load(), row.deleted.Load(), row.kept.Load()
		began := time.Now()
		got, err := r.Lookup(c.t.Context(), key, compute)
		took := time.Since(began)
		raise(&c.longest, int64(took))
		c.reads.Add(1)
		if r == c.replicas[0] {
			row.asked.Add(1)
			if got.Outcome != cache.Hit && took < redislock.DefaultBudget {
				row.missed.Add(1)
			}
		}
		standIn := got.Outcome == cache.Stale && r != c.replicas[0] // values are fresh for a minute
		switch sure := era%2 == 0 && c.era.Load() == era; {
		case !assert.NoError(c.t, err, key):
			return
		case got.Value < floor && standIn:
			c.standIns.Add(1)
		case got.Value < kept, sure && got.Value < floor:
			c.t.Errorf("%s: read version %d (%v, era %d) after %d had been deleted, and %d everywhere", key, got.Value, got.Outcome, era, floor, kept)
			return
		case got.Value < floor:
			c.waived.Add(1)
		}
		time.Sleep(rand.N(60 * time.Millisecond))
	}
}

func (c *crowd) change(key string, row *row) {
	for c.ended.Err() == nil {
		time.Sleep(rand.N(100 * time.Millisecond))
		era, v := c.era.Load(), row.version.Add(1)
		if err := c.replicas[rand.N(len(c.replicas))].Delete(c.t.Context(), key); err != nil {
			c.refused.Add(1)
			continue
		}
		c.deletions.Add(1)
		if era%2 == 0 && c.era.Load() == era {
			raise(&row.deleted, v)
		}
	}
}

// lossy does something after which confirmed deletions may be lost, except for those that keep has made sure of.
func (c *crowd) lossy(keep, do func()) {
	deleted := make(map[*row]int64)
	for _, row := range c.rows {
		deleted[row] = row.deleted.Load()
	}
	keep()
	for row, v := range deleted {
		raise(&row.kept, v)
	}
	c.doubtful(func() {
		do()
		for _, row := range c.rows {
			row.deleted.Store(row.kept.Load())
		}
	})
}

// doubtful does something while which there may be two servers that think the keys are theirs.
func (c *crowd) doubtful(do func()) {
	c.era.Add(1)
	do()
	c.era.Add(1)
}

// spares does something that takes nothing from what some keys are kept on, and checks that calls for those went on to be hits.
func (c *crowd) spares(keys []string, do func()) {
	count := func() (asked, missed int64) {
		for _, key := range keys {
			asked += c.rows[key].asked.Load()
			missed += c.rows[key].missed.Load()
		}
		return asked, missed
	}
	asked, missed := count()
	do()
	askedBy, missedBy := count()
	c.t.Logf("of %d calls for what was not concerned %d were not hits, and at once", askedBy-asked, missedBy-missed)
	assert.LessOrEqual(c.t, missedBy-missed, (askedBy-asked)/10, "other servers' keys were not asked for")
}

func (c *crowd) String() string {
	return fmt.Sprintf("%d reads (the longest took %v), %d deletions and %d more that were not confirmed, %d reads of what was deleted: %d of a last known value, %d of something whose deletion may be lost",
		c.reads.Load(), time.Duration(c.longest.Load()).Round(time.Millisecond), c.deletions.Load(), c.refused.Load(),
		c.standIns.Load()+c.waived.Load(), c.standIns.Load(), c.waived.Load())
}

func raise(to *atomic.Int64, v int64) {
	for old := to.Load(); old < v && !to.CompareAndSwap(old, v); old = to.Load() {
	}
}
