package recompute_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/recomputetest"
)

func TestLocalKeepsTheContractOfLocker(t *testing.T) {
	recomputetest.TestLocker(t, synctest.Test, func(*testing.T) recompute.Locker { return new(recompute.Local) })
}

func TestLocalKeepsTheContractWhileItSignals(t *testing.T) {
	recomputetest.TestLocker(t, synctest.Test, func(t *testing.T) recompute.Locker {
		l := new(recompute.Local)
		l.Signal = func(key string, s recompute.Signal) { // under no lock: it may ask the locker
			_, err := l.Acquire(t.Context(), fmt.Sprint("signalled ", key, s, time.Now()), time.Nanosecond)
			if err != nil {
				assert.ErrorIs(t, err, recompute.ErrHeld)
			}
		}
		return l
	})
}

func TestLocalSignalsWhatOthersMayWantToKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var heard []string
		l := &recompute.Local{Signal: func(key string, s recompute.Signal) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprint(key, " ", map[recompute.Signal]string{recompute.Released: "released", recompute.Renewed: "renewed"}[s]))
		}}
		lease, err := l.Acquire(t.Context(), "a", ttl)
		require.NoError(t, err)
		require.NoError(t, lease.Extend(t.Context(), ttl))
		require.NoError(t, lease.Release(t.Context()))
		assert.Equal(t, []string{"a renewed", "a released"}, heard)

		heard = nil
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, lease.Extend(t.Context(), ttl))
		require.Error(t, lease.Release(t.Context()))
		lease, err = l.Acquire(t.Context(), "a", ttl)
		require.NoError(t, err)
		require.Error(t, lease.Extend(t.Context(), 0))
		require.ErrorIs(t, lease.Extend(ended, ttl), context.Canceled)
		_, err = l.Acquire(t.Context(), "a", ttl)
		require.Error(t, err)
		assert.Empty(t, heard, "nothing has changed, nothing is said")
		time.Sleep(ttl)
		require.Error(t, lease.Release(t.Context()))
		assert.Empty(t, heard, "it had ended by itself, which nobody notices")
	})
}

func TestLocalKeepsNothingOfLeasesThatAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(recompute.Local)
		for n := range 1000 {
			lease, err := l.Acquire(t.Context(), fmt.Sprint(n), ttl)
			require.NoError(t, err)
			if n%2 == 0 {
				time.Sleep(ttl) // the work took too long
				require.ErrorIs(t, lease.Release(t.Context()), recompute.ErrLost)
				continue
			}
			require.NoError(t, lease.Release(t.Context()))
		}
		assert.Zero(t, l.Size())
	})
}
