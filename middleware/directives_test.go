package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/middleware"
)

func TestSecondsAreReadStrictly(t *testing.T) {
	for line, want := range map[string]time.Duration{
		`max-age=3600`:                          time.Hour,
		`max-age=003600`:                        time.Hour,
		`MaX-aGe=3600`:                          time.Hour,
		`max-age="3600"`:                        time.Hour,
		`foo, max-age=3600`:                     time.Hour,
		"foo=1,\tmax-age=3600\t,":               time.Hour,
		`,, max-age=3600 ,,`:                    time.Hour,
		`max-age=2147483647`:                    middleware.Never - time.Second,
		`max-age=2147483648`:                    middleware.Never,
		`max-age=2147483649`:                    middleware.Never,
		`max-age=99999999999`:                   middleware.Never,
		`max-age=` + strings.Repeat("9", 99):    middleware.Never,
		`max-age=0`:                             0,
		`max-age`:                               0,
		`max-age=`:                              0,
		`max-age=""`:                            0,
		`max-age=-3600`:                         0,
		`max-age=+3600`:                         0,
		`max-age='3600'`:                        0,
		`max-age=3600.0`:                        0,
		`max-age=3600.5`:                        0,
		`max-age=a3600`:                         0,
		`max-age=3600a`:                         0,
		`max-age =3600`:                         0,
		`max-age= 3600`:                         0,
		`max-age="3600`:                         0,
		`max-age"3600"`:                         0,
		`max-age=3600 public`:                   0,
		`max-age=3600; foo`:                     0,
		`max-age=1800, max-age=60`:              time.Minute,
		`max-age=60, max-age=1800`:              time.Minute,
		`max-age=60, max-age=x`:                 0,
		`ext="max-age=3600", max-age=1`:         time.Second,
		`max-age=1, ext="max-age=3600"`:         time.Second,
		`ext="a, max-age=3600", max-age=1`:      time.Second,
		`ext="\", max-age=3600", max-age=1`:     time.Second,
		`ext="\\", max-age=60, e="x,max-age=1"`: time.Minute,
	} {
		got, ok := middleware.Seconds(middleware.ParseCacheControl([]string{line}), "max-age")
		assert.True(t, ok, line)
		assert.Equal(t, want, got, line)
	}
}

func TestDirectivesOfSeveralLinesAreOneList(t *testing.T) {
	d := middleware.ParseCacheControl([]string{"max-age=1800", "max-age=60, no-store", "", "private"})
	age, _ := middleware.Seconds(d, "max-age")
	assert.Equal(t, time.Minute, age)
	assert.True(t, middleware.Has(d, "no-store"))
	assert.True(t, middleware.Private(d))
}

func TestNoDirectivesAreNoDirectives(t *testing.T) {
	for _, lines := range [][]string{nil, {""}, {" ,\t, "}, {"=3"}, {`"no-store"`}} {
		d := middleware.ParseCacheControl(lines)
		_, ok := middleware.Seconds(d, "max-age")
		assert.False(t, ok || middleware.Has(d, "no-store") || middleware.NoCache(d) || middleware.Private(d), "%q", lines)
	}
}

func TestAProhibitionHoldsHoweverItIsWritten(t *testing.T) {
	for _, line := range []string{"no-store", "No-StOrE", "no-store=1", "no-store foo", " no-store ", `no-store="`, `ext="a, no-store`, `a, "`, "no-store; x"} {
		assert.True(t, middleware.Has(middleware.ParseCacheControl([]string{line}), "no-store"), line)
	}
}

func TestAPermissionHoldsOnlyInItsProperForm(t *testing.T) {
	for line, want := range map[string]bool{
		"public": true, "Public": true, "foo, public": true,
		"": false, "public=1": false, "public foo": false, "public, public=?0": false, `"public"`: false,
	} {
		assert.Equal(t, want, middleware.Allows(middleware.ParseCacheControl([]string{line}), "public"), line)
	}
}

func TestAQualifiedDirectiveIsAboutTheFieldsThatItNames(t *testing.T) {
	for line, want := range map[string][]string{
		`private="a, x-b"`:                {"A", "X-B"},
		`private="a", private="b"`:        {"A", "B"},
		`private=" a ,, "`:                {"A"},
		`private="a", max-age=3, foo="x"`: {"A"},
		`max-age=1`:                       nil,
	} {
		got, whole := middleware.Fields(middleware.ParseCacheControl([]string{line}), "private")
		assert.Equal(t, want, got, line)
		assert.False(t, whole, line)
	}
}

func TestADirectiveThatNamesNoProperFieldsIsAboutTheWholeResponse(t *testing.T) {
	for _, line := range []string{
		`private`, `private=a`, `private=""`, `private=" , "`, `private="a b"`, `private="a", private`, `private ="a"`, `private="a\"b"`, `private="a`,
	} {
		got, whole := middleware.Fields(middleware.ParseCacheControl([]string{line}), "private")
		assert.Empty(t, got, line)
		assert.True(t, whole, line)
	}
}

func TestATargetedFieldTakesThePlaceOfCacheControl(t *testing.T) {
	targeted := []string{"Mine-Cache-Control", "CDN-Cache-Control"}
	for name, c := range map[string]struct {
		h    http.Header
		want time.Duration
		said bool
	}{
		"the first one counts":                   {header("CDN-Cache-Control: max-age=2", "Mine-Cache-Control: max-age=3", "Cache-Control: max-age=1"), 3 * time.Second, true},
		"the next one, if the first isn't there": {header("CDN-Cache-Control: max-age=2", "Cache-Control: max-age=1"), 2 * time.Second, true},
		"Cache-Control, without any":             {header("Cache-Control: max-age=1"), time.Second, true},
		"Cache-Control, if it is empty":          {header("CDN-Cache-Control:", "Cache-Control: max-age=1"), time.Second, true},
		"Cache-Control, if it is no dictionary":  {header("CDN-Cache-Control: max-age=2, &&&&", "Cache-Control: max-age=1"), time.Second, true},
		"no space before =":                      {header("CDN-Cache-Control: max-age =2", "Cache-Control: max-age=1"), time.Second, true},
		"no space after =":                       {header("CDN-Cache-Control: max-age= 2", "Cache-Control: max-age=1"), time.Second, true},
		"no capitals":                            {header("CDN-Cache-Control: Max-Age=2", "Cache-Control: max-age=1"), time.Second, true},
		"what it doesn't say isn't said":         {header("CDN-Cache-Control: foo", "Cache-Control: max-age=1"), 0, false},
		"the last of two":                        {header("CDN-Cache-Control: max-age=2", "CDN-Cache-Control: max-age=9"), 9 * time.Second, true},
		"large":                                  {header("CDN-Cache-Control: max-age=99999999999"), middleware.Never, true},
		"a string is no number":                  {header(`CDN-Cache-Control: max-age="2"`, "Cache-Control: max-age=1"), 0, true},
		"nor is a decimal":                       {header(`CDN-Cache-Control: max-age=2.0`, "Cache-Control: max-age=1"), 0, true},
		"nor a list":                             {header(`CDN-Cache-Control: max-age=(2)`, "Cache-Control: max-age=1"), 0, true},
		"nor a negative one":                     {header(`CDN-Cache-Control: max-age=-2`, "Cache-Control: max-age=1"), 0, true},
		"parameters are ignored":                 {header(`CDN-Cache-Control: max-age=2;x=1`, "Cache-Control: max-age=1"), 2 * time.Second, true},
	} {
		got, said := middleware.Seconds(middleware.Effective(c.h, targeted), "max-age")
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.said, said, name)
	}
}

func TestProhibitionsInATargetedFieldCount(t *testing.T) {
	for _, line := range []string{"no-store", "max-age=3, no-store", "no-store=1", `no-store="x"`, "no-store;a"} {
		assert.True(t, middleware.Has(middleware.Effective(header("CDN-Cache-Control: "+line, "Cache-Control: max-age=10"), []string{"CDN-Cache-Control"}), "no-store"), line)
	}
	d := middleware.Effective(header(`CDN-Cache-Control: private, no-cache="a, b", public=?0`), []string{"CDN-Cache-Control"})
	assert.True(t, middleware.Private(d))
	assert.False(t, middleware.Allows(d, "public"))
	fields, whole := middleware.Fields(d, "no-cache")
	assert.Equal(t, []string{"A", "B"}, fields)
	assert.False(t, whole)
}

// What stands beside a prohibition can't hide it: quoted strings end, or count as a prohibition themselves.
func TestNothingHidesNoStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		noise := rapid.StringOf(rapid.SampledFrom([]rune("a=\",\\ \t;*1-é\x00")))
		before, after := noise.Draw(t, "before"), noise.Draw(t, "after")
		inside := strings.Count(strings.ReplaceAll(before, `\"`, ""), `"`)%2 == 1 || strings.Contains(before, `\`)
		line := before + ", no-store, " + after
		d := middleware.ParseCacheControl([]string{line})
		closes := strings.Contains(after, `"`)
		if !middleware.Has(d, "no-store") && !(inside && closes) {
			t.Fatalf("%q", line)
		}
	})
}

func FuzzCacheControl(f *testing.F) {
	for _, line := range []string{"max-age=3", `private="a, b", x`, `no-cache="`, `a="\`, "max-age=1, max-age=99999999999999999999", ",,", "s-maxage=\"1\""} {
		f.Add(line, line)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		one, both := middleware.ParseCacheControl([]string{a}), middleware.ParseCacheControl([]string{a, b})
		for _, name := range []string{"max-age", "s-maxage", "stale-if-error"} {
			n, ok := middleware.Seconds(one, name)
			m, still := middleware.Seconds(both, name)
			if n < 0 || n > middleware.Never || !ok && n != 0 || ok && (!still || m > n) {
				t.Fatalf("%s of %q is %v, and %v with %q: more lines can only restrict", name, a, n, m, b)
			}
		}
		for _, whole := range []func(middleware.Directives) bool{middleware.NoCache, middleware.Private} {
			if whole(one) && !whole(both) {
				t.Fatalf("%q lifts a prohibition of %q", b, a)
			}
		}
		for _, h := range []http.Header{{"X": {a}}, {"X": {a, b}}} { // whatever a targeted field says, nothing breaks
			d := middleware.Effective(h, []string{"X"})
			if n, _ := middleware.Seconds(d, "max-age"); n < 0 || n > middleware.Never {
				t.Fatal(fmt.Sprint(d))
			}
		}
	})
}
