package middleware_test

import (
	"encoding/hex"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/middleware"
)

var whole = middleware.Response{
	Status: 200, Header: http.Header{"A": {"1", "2"}, "B": {""}, "C": nil}, Body: []byte("body"),
	Age: time.Second, Fresh: -time.Second, WhileRevalidate: time.Hour, Vary: []string{"X", "Y"}, Generation: "g",
}

func TestAStoredResponseIsReadAsItWasWritten(t *testing.T) {
	texts := rapid.SliceOfN(rapid.String(), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) })
		want := middleware.Response{
			Status: rapid.IntRange(200, 999).Draw(t, "status"), Header: rapid.MapOf(rapid.String(), texts).Draw(t, "header"),
			Body: rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
			Age:  duration.Draw(t, "age"), Fresh: duration.Draw(t, "fresh"), WhileRevalidate: duration.Draw(t, "while"),
			Vary: texts.Draw(t, "vary"), Generation: rapid.String().Draw(t, "generation"),
		}
		b, err := want.MarshalBinary()
		require.NoError(t, err)
		var got middleware.Response
		require.NoError(t, got.UnmarshalBinary(b))
		require.Equal(t, len(want.Header), len(got.Header))
		for field, lines := range want.Header {
			require.ElementsMatch(t, lines, got.Header[field])
		}
		require.ElementsMatch(t, want.Vary, got.Vary)
		want.Header, want.Vary, got.Header, got.Vary = nil, nil, nil, nil
		require.Equal(t, want, got)
	})
}

func TestAnyOtherBytesAreRefused(t *testing.T) {
	b, err := whole.MarshalBinary()
	require.NoError(t, err)
	for n := range b {
		assert.Error(t, new(middleware.Response).UnmarshalBinary(b[:n]), "cut at %d", n)
	}
	assert.Error(t, new(middleware.Response).UnmarshalBinary(append(b, 0)))
}

func FuzzStoredResponse(f *testing.F) {
	b, _ := whole.MarshalBinary()
	f.Add(b)
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 255, 255, 3, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again middleware.Response
		if r.UnmarshalBinary(b) != nil {
			return
		}
		b, err := r.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, again.UnmarshalBinary(b))
		require.Equal(t, r, again)
	})
}

// What an earlier version has stored is read by a later one. Whoever changes this changes the format's number.
func TestTheStoredFormatOfAResponseIsWhatItWas(t *testing.T) {
	const stored = "01900380a8d6b90780e0ba84bf038080c58bc6d10100010641636365707401044574616701032231220568656c6c6f"
	r := middleware.Response{
		Status: 200, Header: http.Header{"Etag": {`"1"`}}, Body: []byte("hello"),
		Age: time.Second, Fresh: time.Minute, WhileRevalidate: time.Hour, Vary: []string{"Accept"},
	}
	b, err := r.MarshalBinary()
	require.NoError(t, err)
	assert.Equal(t, stored, hex.EncodeToString(b))
	var back middleware.Response
	require.NoError(t, back.UnmarshalBinary(b))
	assert.Equal(t, r, back)
}
