package redisstore_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// broken is a source that fails.
type broken struct {
	runs  atomic.Int64
	takes time.Duration
	text  string
}

func (b *broken) compute(context.Context) (string, error) {
	b.runs.Add(1)
	time.Sleep(b.takes)
	return "", sourceError(b.text)
}

type sourceError string

func (e sourceError) Error() string { return "source: " + string(e) }

// Case 7, guarantee 6: one failure is one failure, for all who wait for it on all replicas; and with a cooldown it is
// one for all who ask until it is over.
func TestAFailureIsSharedByTheFleet(t *testing.T) {
	t.Parallel()
	for name, cooldown := range map[string]time.Duration{"without cooldown": 0, "with cooldown": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replicas := fleet(t, serve(t).Addr, 3, func(s *setup[string]) { s.cache.Policy.Cooldown = cooldown })
			for _, r := range replicas { // each knows the server's clock
				_, err := r.Get(t.Context(), "none")
				require.ErrorIs(t, err, cache.ErrNotFound)
			}
			source := broken{takes: 200 * time.Millisecond, text: "row 7 \x00\r\n é is broken"}
			began := time.Now()
			fail(t, replicas, 20, "k", &source)
			ended := time.Now()
			assert.Less(t, ended.Sub(began), 700*time.Millisecond, "no queue of retries")
			assert.EqualValues(t, 1, source.runs.Load())

			fail(t, replicas, 20, "k", &source)
			if cooldown == 0 {
				assert.EqualValues(t, 2, source.runs.Load())
				return
			}
			assert.EqualValues(t, 1, source.runs.Load())
			time.Sleep(time.Until(ended.Add(cooldown + 10*time.Millisecond)))
			fail(t, replicas, 20, "k", &source)
			assert.EqualValues(t, 2, source.runs.Load())

			for i, r := range replicas { // a deletion by another ends the cooldown, as soon as it is heard
				require.NoError(t, replicas[(i+1)%3].Delete(t.Context(), "k"))
				assert.Eventually(t, func() bool {
					v, err := r.GetOrCompute(t.Context(), "k", (&origin[string]{value: "v"}).compute)
					return err == nil && v == "v"
				}, cooldown/2, tick)
			}
		})
	}
}

// fail calls from every replica k times at once and expects the source's error for all.
func fail(t *testing.T, replicas []*replica[string], k int, key string, source *broken) {
	t.Helper()
	var wg sync.WaitGroup
	for _, r := range replicas {
		for range k {
			wg.Go(func() {
				_, err := r.Lookup(t.Context(), key, source.compute)
				assert.ErrorContains(t, err, "source: "+source.text)
			})
		}
	}
	wg.Wait()
}

// A long text is cut, and does not grow the fences.
func TestALongErrorIsCut(t *testing.T) {
	t.Parallel()
	replicas := fleet(t, serve(t).Addr, 2, func(s *setup[string]) { s.cache.Policy.Cooldown = time.Minute })
	source := broken{text: strings.Repeat("x", 1<<20)}
	_, err := replicas[0].Lookup(t.Context(), "k", source.compute)
	require.Error(t, err)
	_, err = replicas[1].Lookup(t.Context(), "k", source.compute)
	var failed *cache.FailedError
	require.ErrorAs(t, err, &failed)
	assert.Less(t, len(failed.Text), 1000)
	assert.EqualValues(t, 1, source.runs.Load())
}

// A value that is at hand is stored, cooldown or not, and ends it.
func TestASetEndsTheCooldown(t *testing.T) {
	t.Parallel()
	replicas := fleet(t, serve(t).Addr, 2, func(s *setup[string]) { s.cache.Policy.Cooldown = time.Minute })
	source := broken{text: "x"}
	_, err := replicas[0].Lookup(t.Context(), "k", source.compute)
	require.Error(t, err)
	require.NoError(t, replicas[1].Set(t.Context(), "k", "v"))
	for _, r := range replicas {
		assert.Equal(t, "v", get(t, r, "k", never[string](t), cache.Hit))
	}
}
