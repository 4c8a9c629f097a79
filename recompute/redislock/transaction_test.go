package redislock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

// With a client that heeds no deadline the transaction goes on; the race detector sees what it would share with its caller.
func TestATransactionThatOutlivesItsBudgetSharesNothingWithItsCaller(t *testing.T) {
	t.Parallel()
	w := throughAs(t, transactions)
	l := must(w.inside, redislock.Options{Budget: 400 * time.Millisecond})
	lease := acquire(t, l, "key", long)
	w.proxy.On(faultproxy.Rule{Marker: "\r\nget\r\n", Do: faultproxy.Delay, For: 600 * time.Millisecond})
	_, err := l.Acquire(t.Context(), "other", long)
	require.ErrorIs(t, err, redislock.ErrBudget)
	err = lease.Extend(t.Context(), long)
	require.ErrorIs(t, err, redislock.ErrBudget)
	require.NotErrorIs(t, err, recompute.ErrLost)
	time.Sleep(500 * time.Millisecond) // they see an answer, which nobody waits for
	w.proxy.Heal()
}
