package middleware_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/middleware"
)

func TestCacheStatus(t *testing.T) {
	for want, r := range map[string]middleware.Report{
		`Bellwether;hit;ttl=376`:                                          middleware.Hits(376 * time.Second),
		`Bellwether;hit;ttl=-12;detail=stale`:                             middleware.Detailed(middleware.Hits(-12*time.Second), "", "stale"),
		`Bellwether;hit;ttl=0;key="3:GET,%C3%A9 \"a\""`:                   middleware.Detailed(middleware.Hits(0), `3:GET,é "a"`, ""),
		`Bellwether;fwd=uri-miss;fwd-status=304;ttl=60;stored`:            middleware.Forwards("uri-miss", 304, time.Minute, true, false),
		`Bellwether;fwd=stale;ttl=60;collapsed`:                           middleware.Forwards("stale", 0, time.Minute, false, true),
		`Bellwether;fwd=bypass;ttl=0;detail="the key function failed: x"`: middleware.Detailed(middleware.Forwards("bypass", 0, 0, false, false), "", "the key function failed: x"),
	} {
		h := header()
		middleware.AddReport(r, h, "Bellwether")
		assert.Equal(t, want, h.Get("Cache-Status"))
	}
	h := header()
	middleware.AddReport(middleware.Report{}, h, "Bellwether")
	assert.Equal(t, "Bellwether", h.Get("Cache-Status"), "what isn't known is left out")
}

func TestCachesNearerToTheOriginComeFirst(t *testing.T) {
	h := header("Cache-Status: origin; hit")
	middleware.AddReport(middleware.Hits(time.Second), h, "docs server")
	assert.Equal(t, []string{"origin; hit", `"docs server";hit;ttl=1`}, h["Cache-Status"])
	list, err := httpsfv.UnmarshalList(h["Cache-Status"])
	require.NoError(t, err)
	assert.Len(t, list, 2)
}

func TestWhateverIsReportedIsAStructuredField(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, detail, name := rapid.String().Draw(t, "key"), rapid.String().Draw(t, "detail"), rapid.String().Draw(t, "name")
		h := header()
		middleware.AddReport(middleware.Detailed(middleware.Hits(0), key, detail), h, name)
		list, err := httpsfv.UnmarshalList(h["Cache-Status"])
		if err != nil || len(list) != 1 || strings.ContainsAny(h.Get("Cache-Status"), "\r\n") {
			t.Fatalf("%q: %v", h, err)
		}
	})
}
