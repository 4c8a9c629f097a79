package recomputetest

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
)

const (
	crowd    = 50               // how many ask together
	patience = 20 * time.Second // for a crowd's work, on a busy machine
)

func oneOfMany(t *testing.T, s subject) {
	var all sync.WaitGroup
	var refused atomic.Int64
	granted := make(chan recompute.Lease, crowd)
	begin := make(chan struct{})
	for range crowd {
		all.Go(func() {
			<-begin
			lease, err := s.Acquire(t.Context(), "key", long)
			switch {
			case err == nil:
				granted <- lease
			case assert.ErrorIs(t, err, recompute.ErrHeld):
				refused.Add(1)
			}
		})
	}
	close(begin)
	all.Wait()
	assert.EqualValues(t, crowd-1, refused.Load())
	if assert.Len(t, granted, 1) {
		assert.NoError(t, (<-granted).Release(t.Context()), "a lease may take up something until it ends, a connection say")
	}
}

// neverTwo has a few take the lease, work and release, over and over.
func neverTwo(t *testing.T, s subject) {
	var all sync.WaitGroup
	var holders, terms atomic.Int64
	deadline := time.Now().Add(patience)
	worker := func() {
		for terms.Load() < crowd && time.Now().Before(deadline) {
			lease, err := s.Acquire(t.Context(), "key", long)
			if errors.Is(err, recompute.ErrHeld) {
				time.Sleep(time.Millisecond)
				continue
			}
			if !assert.NoError(t, err) || !assert.EqualValues(t, 1, holders.Add(1), "holders at once") {
				return
			}
			time.Sleep(time.Millisecond)
			terms.Add(1)
			holders.Add(-1)
			if !assert.NoError(t, lease.Release(t.Context())) {
				return
			}
		}
	}
	for range 8 {
		all.Go(worker)
	}
	all.Wait()
	assert.GreaterOrEqual(t, terms.Load(), int64(crowd))
}

// strange are keys that a locker may be tempted to change, cut or read.
var strange = []string{
	"", " ", "a", "a ", " a", "A", "ab", "a:b", "a:", ":a", "a/../b", "*", "?", "[a]", "%00", "\x00", "a\x00", "a\x00b",
	"\r\n", "a\r\nb", "a\nb", "\t", "\xff", "\xff\xfe", "a\xc3", "\u00e9", "e\u0301", "\ufffd",
	"{", "}", "{}", "}{", "{}x", "x{}", "}x", "~}x", "{~}x", "a}b", "a}c", "{a}", "{a}b", "{a}{b}", "user:{42}:x", "tpl{{.ID}}", `json{"id":1}`,
	strings.Repeat("k", 4096), strings.Repeat("k", 4097),
}

func independentKeys(t *testing.T, s subject) {
	leases := make(map[string]recompute.Lease, len(strange))
	for _, key := range strange {
		leases[key] = s.acquire(key, long)
	}
	for _, key := range strange {
		s.refused(key)
	}
	for i, key := range strange {
		require.NoError(t, leases[key].Release(t.Context()), "%q", key)
		s.free(key)
		for _, other := range strange[i+1:] {
			if i%8 == 0 { // each with each would only take longer
				s.refused(other)
			}
		}
	}
}
