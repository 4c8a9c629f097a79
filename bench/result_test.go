package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPercentilesAreNearestRanks(t *testing.T) {
	ms := func(n int) (ds []time.Duration) {
		for i := range n {
			ds = append(ds, time.Duration(n-i)*time.Millisecond) // descending: spread sorts
		}
		return ds
	}
	assert.Equal(t, Spread{}, spread(nil))
	assert.Equal(t, Spread{Samples: 1, P50: 1, P99: 1, Max: 1}, spread(ms(1)))
	assert.Equal(t, Spread{Samples: 3, P50: 2, P99: 3, Max: 3}, spread(ms(3)))
	assert.Equal(t, Spread{Samples: 200, P50: 100, P99: 198, Max: 200}, spread(ms(200)))
}

func TestWakingCountsFromTheFirstAnswerAfterTheCallersArrival(t *testing.T) {
	o := newOrigin(0, nil)
	o.ends["k"] = []time.Duration{10, 20, 30}
	for _, tc := range []struct {
		from, to, want time.Duration
		waited         bool
	}{
		{from: 0, to: 9, waited: false},           // answered before anything was computed: a hit
		{from: 5, to: 12, want: 10, waited: true}, // waited for the first
		{from: 5, to: 35, want: 10, waited: true}, // was kept although the first was there: shows in full
		{from: 10, to: 20, want: 10, waited: true},
		{from: 11, to: 35, want: 20, waited: true}, // came later
		{from: 31, to: 99, waited: false},
	} {
		end, waited := o.firstEnd("k", tc.from, tc.to)
		assert.Equal(t, tc.waited, waited, "%+v", tc)
		assert.Equal(t, tc.want, end, "%+v", tc)
	}
	_, waited := o.firstEnd("other", 0, 99)
	assert.False(t, waited)
}

func TestTheOriginCountsWhatItWasMadeToDo(t *testing.T) {
	o := newOrigin(time.Hour, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := o.compute("k")(ctx)
	assert.EqualError(t, err, "enough")

	o.delay, o.fail = 0, errOrigin
	_, err = o.compute("k")(t.Context())
	assert.ErrorIs(t, err, errOrigin)

	o.fail = nil
	v, err := o.compute("k")(t.Context())
	require.NoError(t, err)
	computations, peak := o.counts()
	assert.Equal(t, []int{3, 1}, []int{computations, peak})

	at, err := readValue("k", v)
	require.NoError(t, err)
	assert.InDelta(t, now(), at, float64(time.Second))
	_, err = readValue("kk", v)
	assert.ErrorIs(t, err, errWrongValue)
	_, err = readValue("k", v[:100])
	assert.ErrorIs(t, err, errWrongValue)
}
