package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/internal/redistest"
)

func holder(t *testing.T) Holder {
	return Holder{
		Addr: redistest.Start(t).Addr, Arm: "naive", Key: "k", Limit: time.Minute,
		Terms: Terms{Prefix: "t", Fresh: time.Minute, Lease: time.Second},
	}
}

func TestAHolderEndsWithItsParent(t *testing.T) {
	v, err := startHolder(t.Context(), holder(t))
	require.NoError(t, err)
	require.NoError(t, v.in.Close()) // what the system does when the parent is gone
	ended := make(chan error, 1)
	go func() { ended <- v.cmd.Wait() }()
	select {
	case err := <-ended:
		assert.EqualError(t, err, "exit status 1")
	case <-time.After(10 * time.Second):
		t.Error("it lives on without its parent")
		v.kill()
	}
}

func TestAHolderEndsWithTheTrial(t *testing.T) {
	h := holder(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := startHolder(ctx, h)
	if err == nil { // it had begun to compute before it was ended
		v.kill()
		<-v.dead
	} else {
		assert.ErrorContains(t, err, "never computed")
	}
}

func TestAKilledHolderIsGone(t *testing.T) {
	v, err := startHolder(t.Context(), holder(t))
	require.NoError(t, err)
	v.kill()
	v.kill() // harmless
	<-v.dead
	assert.EqualError(t, v.cmd.Process.Kill(), "os: process already finished")
	assert.Equal(t, "signal: killed", v.cmd.ProcessState.String())
}
