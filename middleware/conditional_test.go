package middleware_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/middleware"
)

func TestNotModified(t *testing.T) {
	tagged := header(`ETag: "abcdef"`, "Last-Modified: "+at(-5000), "Date: "+at(0))
	dated := header("Last-Modified: "+at(-3000), "Date: "+at(0))
	for _, c := range []struct {
		says   string
		req    http.Header
		stored http.Header
		want   bool
	}{
		{"no condition", header(), tagged, false},
		{"the same tag", header(`If-None-Match: "abcdef"`), tagged, true},
		{"another tag", header(`If-None-Match: "abcdeg"`), tagged, false},
		{"the first of a list", header(`If-None-Match: "abcdef", "1234", "5678"`), tagged, true},
		{"in the middle", header(`If-None-Match: "1234", "abcdef", "5678"`), tagged, true},
		{"the last", header(`If-None-Match: "1234","5678" ,	"abcdef"`), tagged, true},
		{"on another line", header(`If-None-Match: "1234"`, `If-None-Match: "abcdef"`), tagged, true},
		{"behind empty elements", header(`If-None-Match: ,, "abcdef"`), tagged, true},
		{"any", header(`If-None-Match: *`), tagged, true},
		{"any, without a tag", header(`If-None-Match: *`), header(), true},
		{"weak and strong are alike", header(`If-None-Match: W/"abcdef"`), tagged, true},
		{"strong and weak too", header(`If-None-Match: "abcdef"`), header(`ETag: W/"abcdef"`), true},
		{"both weak", header(`If-None-Match: W/"abcdef"`), header(`ETag: W/"abcdef"`), true},
		{"beyond ASCII", header(`If-None-Match: "abcdefü"`), header(`ETag: "abcdefü"`), true},
		{"a comma in a tag", header(`If-None-Match: "a,b"`), header(`ETag: "a,b"`), true},
		{"no part of a tag", header(`If-None-Match: "a,b"`), header(`ETag: "a"`), false},
		{"a backslash is a backslash", header(`If-None-Match: "a\", "b"`), header(`ETag: "b"`), true},
		{"no tag to compare with", header(`If-None-Match: "abcdef"`), dated, false},
		{"unquoted", header(`If-None-Match: abcdef`), tagged, false},
		{"both unquoted", header(`If-None-Match: abcdef`), header("ETag: abcdef"), false},
		{"empty", header(`If-None-Match:`), header("ETag:"), false},
		{"not closed", header(`If-None-Match: "abcdef`), tagged, false},
		{"what comes after nonsense", header(`If-None-Match: x, "abcdef"`), tagged, false},
		{"If-None-Match before If-Modified-Since", header(`If-None-Match: "abcdef"`, "If-Modified-Since: "+at(-10000)), tagged, true},
		{"also if it fails", header(`If-None-Match: "x"`, "If-Modified-Since: "+at(0)), tagged, false},
		{"also if it is nonsense", header(`If-None-Match: x`, "If-Modified-Since: "+at(0)), tagged, false},

		{"not modified since", header("If-Modified-Since: " + at(-3000)), dated, true},
		{"since later", header("If-Modified-Since: " + at(-2000)), dated, true},
		{"modified since", header("If-Modified-Since: " + at(-3001)), dated, false},
		{"in an old form", header("If-Modified-Since: Wednesday, 04-Mar-26 11:10:00 GMT"), dated, true},
		{"no date", header("If-Modified-Since: yesterday"), dated, false},
		{"two dates", header("If-Modified-Since: "+at(0), "If-Modified-Since: "+at(0)), dated, false},
		{"made before, for want of Last-Modified", header("If-Modified-Since: " + at(0)), header("Date: " + at(0)), true},
		{"made after", header("If-Modified-Since: " + at(-1)), header("Date: " + at(0)), false},
		{"nothing known", header("If-Modified-Since: " + at(0)), header(), false},
	} {
		assert.Equal(t, c.want, middleware.NotModified(c.req, 200, c.stored), c.says)
		for _, status := range []int{302, 404, 500} {
			assert.False(t, middleware.NotModified(c.req, status, c.stored), "%s, but %d", c.says, status)
		}
	}
}

func TestA304HasWhatItsClientMayLack(t *testing.T) {
	kept := []string{"Cache-Control: max-age=3", "Content-Location: /a", "Date: " + at(0), `ETag: "a"`, "Expires: " + at(9), "Vary: A", "Access-Control-Allow-Origin: *"}
	stored := header(append(kept, "Content-Type: text/plain", "Content-Length: 3", "Content-Encoding: gzip", "Content-Language: en", "Last-Modified: "+at(-9))...)
	before := stored.Clone()
	assert.Equal(t, header(kept...), middleware.HeadersOf304(stored))
	assert.Equal(t, before, stored)
	assert.Equal(t, header("Last-Modified: "+at(-9)), middleware.HeadersOf304(header("Last-Modified: "+at(-9), "Content-Type: a")), "when it is the only validator")
}

func TestAHandlerIsAskedByAllValidators(t *testing.T) {
	for _, c := range []struct{ stored, want http.Header }{
		{header(`ETag: "a"`), header(`If-None-Match: "a"`)},
		{header(`ETag: W/"a"`), header(`If-None-Match: W/"a"`)},
		{header("Last-Modified: " + at(-9)), header("If-Modified-Since: " + at(-9))},
		{header(`ETag: "a"`, "Last-Modified: "+at(-9)), header(`If-None-Match: "a"`, "If-Modified-Since: "+at(-9))},
		{header("ETag: a", "Last-Modified: 0"), header()},
		{header("Date: " + at(0)), header()},
	} {
		ask, ok := middleware.Conditions(c.stored)
		assert.Equal(t, c.want, ask)
		assert.Equal(t, len(c.want) > 0, ok)
	}
}

func TestA304RefreshesWhatIsStored(t *testing.T) {
	stored := header(`ETag: "a"`, "Test-Header: 1", "Content-Length: 36", "Content-Encoding: gzip", "Age: 100", "Cache-Control: max-age=1", "X: old", "X: older")
	before := stored.Clone()
	got, ok := middleware.Freshen(stored, header(`ETag: "a"`, "Content-Length: 0", "Content-Encoding: br", "Content-Type: text/plain", "Cache-Control: max-age=3600", "X: new", "Connection: x-y", "X-Y: 1"))
	assert.True(t, ok)
	assert.Equal(t, header(`ETag: "a"`, "Test-Header: 1", "Content-Length: 36", "Content-Encoding: gzip", "Content-Type: text/plain", "Cache-Control: max-age=3600", "X: new"), got)
	assert.Equal(t, before, stored)

	for name, c := range map[string]struct {
		stored, from304 http.Header
		ok              bool
	}{
		"without a tag":             {header(`ETag: "a"`), header(), true},
		"with a weak one":           {header(`ETag: "a"`), header(`ETag: W/"b"`), true},
		"with a first one":          {header("Last-Modified: " + at(-9)), header(`ETag: "b"`), true},
		"of another representation": {header(`ETag: "a"`), header(`ETag: "b"`), false},
	} {
		_, ok := middleware.Freshen(c.stored, c.from304)
		assert.Equal(t, c.ok, ok, name)
	}
}

func TestTheHandlerIsAskedForTheWhole(t *testing.T) {
	h := header("Accept: a", `If-None-Match: "a"`, "If-Modified-Since: "+at(0), `If-Match: "a"`, "If-Unmodified-Since: "+at(0), `If-Range: "a"`, "Range: bytes=0-1")
	assert.Equal(t, header("Accept: a"), middleware.WithoutConditions(h))
	assert.Len(t, h, 7, "the client's own is left alone")
}

func TestSomeConditionsAreForTheOriginAlone(t *testing.T) {
	assert.True(t, middleware.ForOrigin(header(`If-Match: "a"`)))
	assert.True(t, middleware.ForOrigin(header("If-Unmodified-Since: "+at(0))))
	assert.False(t, middleware.ForOrigin(header(`If-None-Match: "a"`, "If-Modified-Since: "+at(0), "Range: bytes=0-")))
}
