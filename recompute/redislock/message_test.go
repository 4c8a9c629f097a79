package redislock_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/recompute/redislock"
)

func TestTheHeadOfAMessageIsForScriptsThatAppendItsBody(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "P5:a key", redislock.Message{Kind: 'P', Name: "a key", Body: "ignored"}.Head())
}

// FuzzMessage sends any message, and reads any bytes: anyone may publish.
func FuzzMessage(f *testing.F) {
	f.Add(byte('R'), "key", "body")
	f.Add(byte('H'), "", "")
	f.Add(byte(':'), "3:a", ":")
	f.Add(byte('0'), "}\x00\r\n\xff", "7:")
	f.Add(byte(0xe9), "é", "é")
	f.Add(byte(0), "\x00", "R99999999999999999999:a")
	f.Fuzz(func(t *testing.T, kind byte, name, body string) {
		m := redislock.Message{Kind: redislock.Kind(kind), Name: name, Body: body}
		got, ok := redislock.Decode(m.Encode())
		require.True(t, ok)
		require.Equal(t, m, got)

		if m, ok := redislock.Decode(body); ok {
			require.LessOrEqual(t, 1+len(m.Name)+1+len(m.Body), len(body), "more than there was")
		}
		_, _ = redislock.Decode(m.Encode()[:len(m.Head())-1]) // cut off
	})
}
