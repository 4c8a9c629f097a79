package backend_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/example/backend"
)

func TestEmbeddedKeysRunOut(t *testing.T) {
	b, err := backend.Open(t.Context(), "")
	require.NoError(t, err)
	defer b.Close()
	assert.True(t, b.Embedded)
	assert.Contains(t, b.String(), "embedded miniredis")

	rdb := b.Client()
	defer rdb.Close()
	require.NoError(t, rdb.Set(t.Context(), "key", "value", 50*time.Millisecond).Err())
	assert.Equal(t, "value", rdb.Get(t.Context(), "key").Val())
	assert.Eventually(t, func() bool { return rdb.Exists(t.Context(), "key").Val() == 0 }, 5*time.Second, 5*time.Millisecond)
}

func TestAnotherProcessCanShareIt(t *testing.T) {
	b, err := backend.Open(t.Context(), "")
	require.NoError(t, err)
	defer b.Close()
	for _, addr := range []string{b.Addr, "redis://" + b.Addr + "/0"} {
		shared, err := backend.Open(t.Context(), addr)
		require.NoError(t, err, addr)
		assert.False(t, shared.Embedded)
		assert.Equal(t, "Redis at "+b.Addr, shared.String())
		shared.Close()
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	_, err := backend.Open(t.Context(), "127.0.0.1:1")
	assert.ErrorContains(t, err, "no answer from Redis at 127.0.0.1:1")
	_, err = backend.Open(t.Context(), "http://127.0.0.1:1")
	assert.ErrorContains(t, err, "backend: redis: invalid URL scheme")
}
