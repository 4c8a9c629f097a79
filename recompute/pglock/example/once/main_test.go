package main

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute/pglock/internal/pgtest"
)

func TestMain(m *testing.M) {
	serverMain()
	pgtest.Main(m, nil)
}

// open returns fresh tables for the time of the test.
func open(t *testing.T) accounts {
	a := accounts{pgtest.Pool(t, pgtest.Shared(t).URL())}
	require.NoError(t, a.create(t.Context()))
	t.Cleanup(func() { assert.NoError(t, a.drop(context.WithoutCancel(t.Context()))) })
	return a
}

func TestARetryAfterACrashBetweenEffectAndReplyHasTheRecordedResult(t *testing.T) {
	r, err := retry(t.Context(), pgtest.Shared(t).URL(), "order", t.Output())
	require.NoError(t, err)
	assert.Equal(t, result{answer: receipt{Balance: 7500, Again: true}, balance: 7500}, r)
}

// The control: a lease keeps two from charging at once, not one after the other.
func TestALeaseAloneDoesNotMakeARetryHarmless(t *testing.T) {
	r, err := retry(t.Context(), pgtest.Shared(t).URL(), "", t.Output())
	require.NoError(t, err)
	assert.Equal(t, result{answer: receipt{Balance: 5000}, balance: 5000}, r)
}

func TestTriesAtTheSameTimeChargeOnce(t *testing.T) {
	a := open(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var first int
	for range 20 {
		all.Go(func() {
			r, err := a.chargeOnce(t.Context(), "order", charge{"alice", 2500})
			assert.NoError(t, err)
			assert.EqualValues(t, 7500, r.Balance)
			mu.Lock()
			defer mu.Unlock()
			if !r.Again {
				first++
			}
		})
	}
	all.Wait()
	assert.Equal(t, 1, first)
	has, err := a.balance(t.Context(), "alice")
	require.NoError(t, err)
	assert.EqualValues(t, 7500, has)
}

func TestAKeyIsForOneCharge(t *testing.T) {
	a := open(t)
	_, err := a.chargeOnce(t.Context(), "order", charge{"alice", 2500})
	require.NoError(t, err)
	_, err = a.chargeOnce(t.Context(), "order", charge{"alice", 2600})
	require.ErrorIs(t, err, errOther)
	r, err := a.chargeOnce(t.Context(), "other order", charge{"alice", 2600})
	require.NoError(t, err)
	assert.Equal(t, receipt{Balance: 4900}, r)
}

func TestWhatFailedIsNotRecorded(t *testing.T) {
	a := open(t)
	for range 2 {
		_, err := a.chargeOnce(t.Context(), "order", charge{"alice", 1_000_000})
		require.ErrorContains(t, err, "debit")
	}
	_, err := a.pool.Exec(t.Context(), "UPDATE bellwether_example_accounts SET cents = 1000001")
	require.NoError(t, err)
	r, err := a.chargeOnce(t.Context(), "order", charge{"alice", 1_000_000})
	require.NoError(t, err)
	assert.Equal(t, receipt{Balance: 1}, r)
}

func TestTheExampleRuns(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), pgtest.Shared(t).URL(), &out))
	assert.Contains(t, out.String(), "the answer (recorded before: true) says that she has 75.00; she has 75.00")
}
