package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/middleware"
)

// asking is a GET with these header lines.
func asking(lines ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://example.com/a", nil)
	r.Header = header(lines...)
	return r
}

var (
	safe     = middleware.Sharing(false, false, false)
	targeted = []string{"CDN-Cache-Control"}
)

func storable(r *http.Request, status int, lines ...string) string {
	h := header(lines...)
	why, ok := middleware.Storable(r, status, h, middleware.Effective(h, targeted), safe)
	if ok != (why == "") {
		return "no reason"
	}
	return why
}

func TestWhatMayBeStored(t *testing.T) {
	for _, c := range []struct {
		status int
		lines  []string
		why    string // not
	}{
		{200, []string{"Cache-Control: max-age=3600"}, ""},
		{200, []string{"Expires: " + at(3600)}, ""},
		{200, []string{}, ""}, // for a guess, or until the next time it is asked about
		{200, []string{"Cache-Control: no-cache"}, ""},
		{200, []string{`Cache-Control: private="a", max-age=1`}, ""},
		{200, []string{"Cache-Control: max-age=3600", "Pragma: no-cache"}, ""},
		{599, []string{"Cache-Control: max-age=3600"}, ""},
		{599, []string{"Cache-Control: public"}, ""},
		{503, []string{"Cache-Control: s-maxage=3600"}, ""},
		{302, []string{"Expires: " + at(-100)}, ""},
		{404, nil, ""},
		{599, nil, "no-lifetime"},
		{302, nil, "no-lifetime"},
		{500, []string{"Cache-Control: public=1"}, "no-lifetime"},
		{302, []string{"CDN-Cache-Control: foo", "Expires: " + at(3600), "Cache-Control: max-age=3600"}, "no-lifetime"},

		{100, []string{"Cache-Control: max-age=3600"}, "status"},
		{103, []string{"Cache-Control: max-age=3600"}, "status"},
		{0, []string{"Cache-Control: max-age=3600"}, "status"},
		{206, []string{"Cache-Control: max-age=3600"}, "status"},
		{304, []string{"Cache-Control: max-age=3600"}, "status"},

		{200, []string{"Cache-Control: no-store"}, "no-store"},
		{200, []string{"Cache-Control: nO-StOrE, max-age=3600"}, "no-store"},
		{200, []string{"Cache-Control: max-age=3600", "Cache-Control: no-store"}, "no-store"},
		{200, []string{"Cache-Control: public, no-store, max-age=3600"}, "no-store"},
		{200, []string{"Cache-Control: max-age=3600, no-store, must-understand"}, ""},
		{200, []string{"Cache-Control: max-age=3600, no-store, must-understand=1"}, "no-store"},
		{599, []string{"Cache-Control: max-age=3600, no-store, must-understand"}, "must-understand"},
		{599, []string{"Cache-Control: max-age=3600, must-understand"}, "must-understand"},
		{226, []string{"Cache-Control: max-age=3600, must-understand"}, "must-understand"},

		{200, []string{"Cache-Control: private, max-age=3600"}, "private"},
		{200, []string{"Cache-Control: private, public"}, "private"},
		{200, []string{`Cache-Control: private="a", private`}, "private"},
		{200, []string{"CDN-Cache-Control: private", "Cache-Control: max-age=3600"}, "private"},
		{200, []string{"CDN-Cache-Control: no-store", "Cache-Control: max-age=3600"}, "no-store"},
		{200, []string{"CDN-Cache-Control: max-age=1", "Cache-Control: private, no-store"}, ""},
		{200, []string{"CDN-Cache-Control: max-age=1, &&", "Cache-Control: no-store"}, "no-store"},

		{200, []string{"Vary: Foo", "Cache-Control: max-age=3600"}, ""},
		{200, []string{"Vary: *", "Cache-Control: max-age=3600"}, "vary"},
		{200, []string{"Vary: Foo, *", "Cache-Control: public, max-age=3600"}, "vary"},

		{200, []string{"Set-Cookie: a=b", "Cache-Control: public, s-maxage=3600"}, "set-cookie"},
		{200, []string{"Set-Cookie: a=b", `Cache-Control: no-cache="set-cookie", max-age=3600`}, ""},
		{200, []string{"Set-Cookie: a=b", `Cache-Control: private="Set-Cookie", max-age=3600`}, ""},
		{200, []string{"Set-Cookie2: a=b", "Cache-Control: max-age=3600"}, ""},
	} {
		assert.Equal(t, c.why, storable(asking(), c.status, c.lines...), "%d %q", c.status, c.lines)
	}
}

func TestAnswersToWhoSaidWhoTheyAreAreForThemAlone(t *testing.T) {
	for _, c := range []struct {
		lines                 []string
		authorization, cookie string // why not
	}{
		{[]string{"Cache-Control: max-age=3600"}, "authorization", "cookie"},
		{[]string{"Expires: " + at(3600)}, "authorization", "cookie"},
		{[]string{"Cache-Control: max-age=3600, public"}, "", ""},
		{[]string{"Cache-Control: s-maxage=3600"}, "", ""},
		{[]string{"Cache-Control: max-age=3600, must-revalidate"}, "", "cookie"},
		{[]string{"Cache-Control: max-age=3600, proxy-revalidate"}, "authorization", "cookie"},
		{[]string{"Cache-Control: max-age=3600, public=no"}, "authorization", "cookie"},
		{[]string{"Cache-Control: max-age=3600", "Vary: Accept, cookie"}, "authorization", ""},
		{[]string{"Cache-Control: max-age=3600", "Vary: Authorization"}, "authorization", "cookie"},
		{[]string{"CDN-Cache-Control: max-age=3600", "Cache-Control: public"}, "authorization", "cookie"},
	} {
		h := header(c.lines...)
		d := middleware.Effective(h, targeted)
		for r, want := range map[*http.Request]string{
			asking():                      "",
			asking("Authorization: a"):    c.authorization,
			asking("Cookie: a=b"):         c.cookie,
			asking("Cookie:", "Cookie: "): c.cookie,
		} {
			assert.Equal(t, want, storable(r, 200, c.lines...), "%q for %v", c.lines, r.Header)
			why, ok := middleware.Reusable(r, h, d, safe)
			assert.Equal(t, want, why, "%q for %v", c.lines, r.Header)
			assert.Equal(t, want == "", ok)
		}
	}
}

func TestTheUserMayAllowMore(t *testing.T) {
	h := header("Cache-Control: max-age=3600", "Set-Cookie: a=b")
	allowed := func(r *http.Request, status int, h http.Header, cookies, setCookies, unsaid bool, keyed ...string) bool {
		o := middleware.Sharing(cookies, setCookies, unsaid, keyed...)
		_, ok := middleware.Storable(r, status, h, middleware.Effective(h, targeted), o)
		return ok
	}
	assert.True(t, allowed(asking(), 200, h, false, true, false))
	assert.False(t, allowed(asking(), 200, h, true, false, true))
	assert.True(t, allowed(asking("Cookie: a=b"), 200, header(), true, false, false))
	assert.True(t, allowed(asking("Cookie: a=b"), 200, header(), false, false, false, "Cookie"))
	assert.True(t, allowed(asking("Authorization: x"), 200, header(), false, false, false, "Authorization"))
	assert.False(t, allowed(asking("Authorization: x"), 200, header(), true, true, true, "Cookie"))
	assert.True(t, allowed(asking(), 302, header(), false, false, true))
	assert.False(t, allowed(asking(), 302, header(), true, true, false))
	for _, forbids := range []string{"no-store", "private"} {
		assert.False(t, allowed(asking(), 200, header("Cache-Control: "+forbids), true, true, true, "Cookie", "Authorization"), forbids)
	}
}

// Prohibitions hold whatever else a response says, and whatever the user allows.
func TestNothingLiftsAProhibition(t *testing.T) {
	others := []string{"public", "max-age=60", "s-maxage=60", "must-revalidate", "immutable", "stale-if-error=9", `no-cache="a"`, "no-cache", "x"}
	rapid.Check(t, func(t *rapid.T) {
		h := header("Cache-Control: " + rapid.SampledFrom([]string{"no-store", "private", "NO-STORE", "Private"}).Draw(t, "prohibition"))
		for _, other := range rapid.SliceOf(rapid.SampledFrom(others)).Draw(t, "others") {
			h.Add("Cache-Control", other)
		}
		status := rapid.IntRange(100, 599).Draw(t, "status")
		any := rapid.Bool()
		o := middleware.Sharing(any.Draw(t, "cookies"), any.Draw(t, "set-cookies"), any.Draw(t, "unsaid"), "Cookie", "Authorization")
		if why, ok := middleware.Storable(asking(), status, h, middleware.Effective(h, nil), o); ok || why == "" {
			t.Fatalf("%d %v may be stored", status, h)
		}
	})
}
