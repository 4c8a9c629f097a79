package middleware_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/middleware"
)

const month = 30 * 24 * 60 * 60 // seconds

func TestDatesAreReadInTheThreeFormsOfHTTPAlone(t *testing.T) {
	august := time.Date(2050, time.August, 18, 2, 1, 18, 0, time.UTC)
	for _, value := range []string{
		"Thu, 18 Aug 2050 02:01:18 GMT", "THU, 18 Aug 2050 02:01:18 GMT", "thu, 18 AUG 2050 02:01:18 GMT", "Thu, 18 Aug 2050 02:01:18 gMT",
		"Thursday, 18-Aug-50 02:01:18 GMT", "Thu Aug 18 02:01:18 2050", "Mon, 18 Aug 2050 02:01:18 GMT", " Thu, 18 Aug 2050 02:01:18 GMT\t",
	} {
		got, ok := middleware.ParseDate(value)
		assert.True(t, ok && got.Equal(august), "%s is %v", value, got)
	}
	got, ok := middleware.ParseDate("Thu Aug  8 02:01:18 2050")
	assert.True(t, ok && got.Equal(august.AddDate(0, 0, -10)))

	for _, value := range []string{
		"", "0", "-1", "now", "Thu, 18 Aug 2050 02:01:18 UTC", "Thu, 18 Aug 2050 02:01:18 AEST", "Thu, 18 Aug 2050 02:01:18 +0000",
		"Thursday, 18-Aug-50 02:01:18 UTC", "Thu, 18 Aug 50 02:01:18 GMT", "Thu 18 Aug 2050 02:01:18 GMT", "Thu, 18  Aug  2050 02:01:18 GMT",
		"Thu, 18-Aug-2050 02:01:18 GMT", "Thu, 18 Aug 2050 02.01.18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT", "Thu, 8 Aug 2050 02:01:18 GMT",
		"Thu, 18 Aug 2050 02:01:18", "Thu, 32 Aug 2050 02:01:18 GMT", "2050-08-18T02:01:18Z",
	} {
		_, ok := middleware.ParseDate(value)
		assert.False(t, ok, value)
	}
}

func TestLifetime(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		says string
		h    http.Header
		want time.Duration
	}{
		{"max-age", header("Cache-Control: max-age=3600"), hour},
		{"s-maxage before max-age", header("Cache-Control: max-age=3600, s-maxage=1"), time.Second},
		{"in any order", header("Cache-Control: s-maxage=1, max-age=3600"), time.Second},
		{"on any line", header("Cache-Control: max-age=3600", "Cache-Control: s-maxage=1"), time.Second},
		{"also if it is longer", header("Cache-Control: max-age=0, s-maxage=3600", "Expires: "+at(-10)), hour},
		{"an invalid s-maxage doesn't fall back", header("Cache-Control: max-age=3600, s-maxage=x"), 0},
		{"max-age before Expires", header("Cache-Control: max-age=3600", "Expires: "+at(-7200), "Date: "+at(0)), hour},
		{"even an invalid one", header("Cache-Control: max-age=3600", "Expires: 0"), hour},
		{"even if it is 0", header("Cache-Control: max-age=0", "Expires: "+at(3600), "Date: "+at(0)), 0},
		{"no-cache before all", header("Cache-Control: max-age=3600, no-cache", "Expires: "+at(3600)), 0},
		{"no-cache of fields is no matter of freshness", header(`Cache-Control: max-age=3600, no-cache="a"`), hour},
		{"Expires less Date", header("Expires: "+at(3600), "Date: "+at(0)), hour},
		{"whatever the clock says", header("Expires: "+at(3600), "Date: "+at(1800)), hour / 2},
		{"or less now", header("Expires: " + at(3600)), hour},
		{"also if Date is no date", header("Expires: "+at(3600), "Date: foo"), hour},
		{"Expires in the past", header("Expires: "+at(-month), "Date: "+at(0)), 0},
		{"Expires now", header("Expires: "+at(0), "Date: "+at(0)), 0},
		{"Expires before Date, both ahead", header("Expires: "+at(300), "Date: "+at(400)), 0},
		{"Expires far ahead", header("Expires: Sun, 21 Nov 2286 04:46:39 GMT", "Date: "+at(0)), middleware.Never},
		{"Expires that is no date", header("Expires: 0", "Date: "+at(0)), 0},
		{"Expires that is empty", header("Expires:", "Date: "+at(0)), 0},
		{"one of two Expires that is none", header("Expires: "+at(3600), "Expires: 0", "Date: "+at(0)), 0},
		{"the earlier of two", header("Expires: "+at(3600), "Expires: "+at(60), "Date: "+at(0)), time.Minute},
		{"targeted before all", header("CDN-Cache-Control: max-age=1", "Cache-Control: s-maxage=3600", "Expires: "+at(3600)), time.Second},
		{"targeted no-cache", header("CDN-Cache-Control: no-cache", "Cache-Control: s-maxage=3600"), 0},
	} {
		got, explicit := middleware.Lifetime(c.h, middleware.Effective(c.h, []string{"CDN-Cache-Control"}), noon)
		assert.Equal(t, c.want, got, c.says)
		assert.True(t, explicit, c.says)
	}
}

func TestAResponseThatSaysNoLifetimeHasNone(t *testing.T) {
	for _, h := range []http.Header{
		header(), header("Cache-Control: public"), header("Cache-Control: must-revalidate"), header("Last-Modified: " + at(-100)),
		header("CDN-Cache-Control: public", "Cache-Control: max-age=3600", "Expires: "+at(3600)),
	} {
		got, explicit := middleware.Lifetime(h, middleware.Effective(h, []string{"CDN-Cache-Control"}), noon)
		assert.Zero(t, got, h)
		assert.False(t, explicit, h)
	}
}

func TestAGuessIsATenthOfTheTimeSinceTheLastChange(t *testing.T) {
	hours := func(n int) string { return "Last-Modified: " + at(-n*60*60) }
	guess := func(status int, lines ...string) time.Duration {
		h := header(lines...)
		return middleware.Heuristic(status, h, middleware.ParseCacheControl(h["Cache-Control"]), noon)
	}
	assert.Equal(t, time.Hour, guess(200, hours(10), "Date: "+at(0)))
	assert.Equal(t, time.Hour, guess(200, hours(10)), "without a Date")
	assert.Equal(t, time.Second, guess(200, "Last-Modified: "+at(-19)), "whole seconds")
	assert.Equal(t, 24*time.Hour, guess(200, hours(10_000)), "a day at most")
	assert.Zero(t, guess(200, "Last-Modified: "+at(100)), "from the future")
	assert.Zero(t, guess(200), "without a Last-Modified")
	assert.Zero(t, guess(200, "Last-Modified: yesterday"))
	assert.Zero(t, guess(200, hours(10), "Cache-Control: no-cache"))
	for _, status := range []int{200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501} {
		assert.Equal(t, time.Hour, guess(status, hours(10)), status)
	}
	for _, status := range []int{201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599} {
		assert.Zero(t, guess(status, hours(10)), status)
		assert.Equal(t, time.Hour, guess(status, hours(10), "Cache-Control: public"), status)
	}
}

func TestAgeOnArrival(t *testing.T) {
	for _, c := range []struct {
		says  string
		h     http.Header
		delay time.Duration
		want  time.Duration
	}{
		{"none", header(), 0, 0},
		{"its delay", header(), 3 * time.Second, 3 * time.Second},
		{"Age", header("Age: 7200"), 0, 2 * time.Hour},
		{"Age and the delay", header("Age: 7200"), time.Second, 2*time.Hour + time.Second},
		{"since Date", header("Date: " + at(-7200)), 0, 2 * time.Hour},
		{"since Date, if that is more", header("Date: "+at(-7200), "Age: 60"), 0, 2 * time.Hour},
		{"Age, if that is more", header("Date: "+at(-10), "Age: 25"), 0, 25 * time.Second},
		{"not negative", header("Date: "+at(10), "Age: 15"), 0, 15 * time.Second},
		{"no age of words", header("Age: abc"), 0, 0},
		{"nor below 0", header("Age: -7200"), 0, 0},
		{"nor with a part of a second", header("Age: 7200.0"), 0, 0},
		{"nor with parameters", header("Age: 7200;foo=bar"), 0, 0},
		{"nor the second of two", header("Age: abc, 7200"), 0, 0},
		{"the first of two", header("Age: 7200, 0"), 0, 2 * time.Hour},
		{"be it the lesser", header("Age: 0, 7200"), 0, 0},
		{"the first line of two", header("Age: 7200", "Age: 0"), 0, 2 * time.Hour},
		{"be it the lesser line", header("Age: 0", "Age: 7200"), 0, 0},
		{"large", header("Age: 2147483647"), 0, middleware.Never - time.Second},
		{"larger", header("Age: 2147483648"), 0, middleware.Never},
		{"too large for any number", header("Age: 99999999999999999999999"), 0, middleware.Never},
	} {
		assert.Equal(t, c.want, middleware.CorrectedAge(c.h, noon, c.delay), c.says)
	}
	assert.Zero(t, middleware.CorrectedAge(header("Date: "+at(0)), noon.Add(999*time.Millisecond), 0), "Date has no parts of a second")
}

func TestStaleWindows(t *testing.T) {
	windows := func(line string) (revalidate, failure time.Duration, must bool) {
		d := middleware.ParseCacheControl([]string{line})
		revalidate, _ = middleware.StaleWhileRevalidate(d)
		failure, _ = middleware.StaleIfError(d)
		return revalidate, failure, middleware.MustRevalidate(d)
	}
	const both = "max-age=1, stale-while-revalidate=60, stale-if-error=3600"
	r, e, must := windows(both)
	assert.Equal(t, []any{time.Minute, time.Hour, false}, []any{r, e, must})
	for _, forbids := range []string{"must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2", "Must-Revalidate", "s-maxage"} {
		r, e, must = windows(both + ", " + forbids)
		assert.Equal(t, []any{time.Duration(0), time.Duration(0), true}, []any{r, e, must}, forbids)
	}
	r, e, _ = windows("max-age=1, stale-while-revalidate, stale-if-error=x")
	assert.Zero(t, r+e, "no windows that can't be read")
}
