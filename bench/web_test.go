package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

// overWeb gives a test two replicas of an arm over HTTP.
func overWeb(t *testing.T, arm Arm) (a, b Replica) {
	t.Helper()
	server := redistest.Start(t)
	open := func() Replica {
		r, err := overHTTP(arm, 4).New(redistest.Client(t, server), Terms{Prefix: "web", Fresh: time.Minute})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, r.Close()) })
		return r
	}
	return open(), open()
}

func TestEveryArmKeepsItsValuesOverHTTP(t *testing.T) {
	for _, arm := range arms() {
		t.Run(arm.Name, func(t *testing.T) {
			a, b := overWeb(t, arm)
			origin := newOrigin(0, nil)
			get := func(r Replica) {
				v, err := r.Get(t.Context(), "k", origin.compute("k"))
				require.NoError(t, err)
				_, err = readValue("k", v)
				require.NoError(t, err)
			}
			computed := func() int { n, _ := origin.counts(); return n }
			get(a)
			get(b)
			assert.Equal(t, 1, computed(), "replicas share")
			require.NoError(t, a.Delete(t.Context(), "k"))
			get(b)
			assert.Equal(t, 2, computed())
		})
	}
}

func TestErrorsComeOverHTTP(t *testing.T) {
	for _, arm := range arms() {
		t.Run(arm.Name, func(t *testing.T) {
			a, _ := overWeb(t, arm)
			_, err := a.Get(t.Context(), "k", func(context.Context) ([]byte, error) { return nil, errors.New("broken") })
			assert.ErrorContains(t, err, "status 500")
		})
	}
}
