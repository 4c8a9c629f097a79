package middleware_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/middleware"
)

// get is a GET as a server sees it.
func get(t require.TestingT, target, host string, lines ...string) *http.Request {
	u, err := url.ParseRequestURI(target)
	require.NoError(t, err)
	return &http.Request{Method: http.MethodGet, URL: u, Host: host, Header: header(lines...), RequestURI: target}
}

func keyOf(t require.TestingT, k middleware.Key, r *http.Request) string {
	key, err := middleware.Of(k, r)
	require.NoError(t, err)
	return key
}

func TestDistinctRequestsHaveDistinctKeys(t *testing.T) {
	targets := []string{
		"/", "/a", "/A", "/a/", "/a//", "/a%2Fb", "/a/b", "/a%2fb", "/%41", "/a?", "/a?q=1", "/a?q=2", "/a?Q=1", "/a?q=1&", "/a?q=1&r=2", "/a?r=2&q=1",
		"/a?q=1%26r=2", "/a?q=1;r=2", "/a?q=%31", "/a?q=+", "/a?q=%20", "/a?q=1&q=1", "/a%3Fq=1", "/a;x", "/a%3Bx", "/../a", "/./a",
		"/a?a=b&c=d", "/a?a=b%26c=d", "/a?a=b%26c%3Dd", "/a,5:x", "/a?" + strings.Repeat("x", 500), "/a?" + strings.Repeat("x", 501), "/" + strings.Repeat("x", 500),
	}
	hosts := []string{"example.com", "example.com:8080", "example.org", "www.example.com", "", "K.com", "\u212a.com"}
	seen := map[string]string{}
	for _, target := range targets {
		for _, host := range hosts {
			for _, secure := range []bool{false, true} {
				r := get(t, target, host)
				if secure {
					r.TLS = &tls.ConnectionState{}
				}
				key, name := keyOf(t, middleware.Key{}, r), host+target+r.Proto
				assert.Empty(t, seen[key], name)
				assert.LessOrEqual(t, len(key), middleware.LongestKey)
				seen[key] = name
			}
		}
	}
}

func TestWhatIsTheSameResourceHasOneKey(t *testing.T) {
	one := keyOf(t, middleware.Key{}, get(t, "/a?q=1", "example.com"))
	assert.Equal(t, one, keyOf(t, middleware.Key{}, get(t, "/a?q=1", "EXAMPLE.com")))
	assert.Equal(t, one, keyOf(t, middleware.Key{}, get(t, "http://example.com/a?q=1", "example.com")))
	assert.Equal(t, one, keyOf(t, middleware.Key{}, get(t, "/a?q=1", "example.com", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil", "Cookie: a")))
	for method, same := range map[string]bool{"": true, "HEAD": true, "GET": true, "POST": false, "get": false, "QUERY": false} {
		r := get(t, "/a?q=1", "example.com")
		r.Method = method
		assert.Equal(t, same, one == keyOf(t, middleware.Key{}, r), method)
	}
}

func TestQueryParametersCanBeLeftOut(t *testing.T) {
	ignoring := middleware.Key{IgnoreQuery: []string{"utm_source", "fb clid"}}
	allowing := middleware.Key{AllowQuery: []string{"q", "page"}}
	for _, c := range []struct {
		key    middleware.Key
		a, b   string
		differ bool
	}{
		{ignoring, "q=1&utm_source=x", "q=1", false},
		{ignoring, "utm_source=x&q=1&utm_source=y", "q=1", false},
		{ignoring, "utm%5Fsource=x", "", false},
		{ignoring, "fb+clid=x&fb%20clid", "", false},
		{ignoring, "utm_source", "", false},
		{ignoring, "q=1", "q=2", true},
		{ignoring, "q=1&q=2", "q=2&q=1", true},
		{ignoring, "UTM_SOURCE=1", "", true},
		{ignoring, "utm_source=1;q=2", "utm_source=1;q=3", true}, // some readers see a q there
		{ignoring, "utm_source%zz=1", "", true},
		{allowing, "q=1&utm_source=x&_=123", "q=1", false},
		{allowing, "_=1", "", false},
		{allowing, "q=1", "q=2", true},
		{allowing, "page=1", "", true},
		{allowing, "q=1&page=2", "page=2&q=1", true},
		{allowing, "x=1;q=2", "x=1;q=3", true},
	} {
		a, b := keyOf(t, c.key, get(t, "/a?"+c.a, "h")), keyOf(t, c.key, get(t, "/a?"+c.b, "h"))
		assert.Equal(t, c.differ, a != b, "%q and %q", c.a, c.b)
	}
}

func TestAKeyCanHaveMore(t *testing.T) {
	plain := keyOf(t, middleware.Key{}, get(t, "/a", "h"))
	k := middleware.Key{Space: "docs", Headers: []string{"x-tenant", "Accept-Encoding"}, Add: func(r *http.Request) (string, error) { return r.Header.Get("Plan"), nil }}
	keys := map[string]bool{plain: true}
	for _, r := range []*http.Request{
		get(t, "/a", "h"), get(t, "/b", "h"), get(t, "/a", "h", "X-Tenant: 1"), get(t, "/a", "h", "X-Tenant: 2"), get(t, "/a", "h", "X-Tenant:"),
		get(t, "/a", "h", "Plan: 1"), get(t, "/a", "h", "X-Tenant: 1", "Plan: 1"), get(t, "/a", "h", "Accept-Encoding: gzip"),
	} {
		key := keyOf(t, k, r)
		assert.False(t, keys[key], r.Header)
		keys[key] = true
	}
	assert.Equal(t, keyOf(t, k, get(t, "/a", "h", "Accept-Encoding: gzip, br")), keyOf(t, k, get(t, "/a", "h", "Accept-Encoding: br,gzip")))
	other := k
	other.Space = "admin"
	assert.NotEqual(t, keyOf(t, k, get(t, "/a", "h")), keyOf(t, other, get(t, "/a", "h")))
}

func TestAForwardedSchemeIsBelievedOnlyWhenToldTo(t *testing.T) {
	behind := middleware.Key{ForwardedProto: true}
	secure := httptest.NewRequest(http.MethodGet, "https://h/a", nil)
	secure.URL, _ = url.ParseRequestURI("/a")
	want := keyOf(t, middleware.Key{}, secure)
	assert.Equal(t, want, keyOf(t, behind, get(t, "/a", "h", "X-Forwarded-Proto: https")))
	plain := keyOf(t, middleware.Key{}, get(t, "/a", "h"))
	assert.NotEqual(t, want, plain)
	for _, odd := range []string{"HTTPS", "https, http", "ftp", ""} {
		assert.Equal(t, plain, keyOf(t, behind, get(t, "/a", "h", "X-Forwarded-Proto: "+odd)), odd)
	}
	assert.Equal(t, plain, keyOf(t, behind, get(t, "/a", "h", "X-Forwarded-Proto: https", "X-Forwarded-Proto: http")))
}

func TestARequestThatHasNoKeyIsToldSo(t *testing.T) {
	lost := errors.New("no tenant")
	key, err := middleware.Of(middleware.Key{Add: func(*http.Request) (string, error) { return "x", lost }}, get(t, "/a", "h"))
	assert.ErrorIs(t, err, lost)
	assert.Empty(t, key)

	r := get(t, "/a", "h")
	r.URL = &url.URL{Scheme: "http", Opaque: "a"}
	key, err = middleware.Of(middleware.Key{}, r)
	assert.Error(t, err)
	assert.Empty(t, key)
}

func TestAKeyThatCantWorkNamesItsField(t *testing.T) {
	assert.NoError(t, middleware.Check(middleware.Key{}))
	assert.NoError(t, middleware.Check(middleware.Key{IgnoreQuery: []string{"a"}, Headers: []string{"Accept"}}))
	assert.ErrorContains(t, middleware.Check(middleware.Key{IgnoreQuery: []string{"a"}, AllowQuery: []string{"b"}}), "Key.AllowQuery")
	assert.ErrorContains(t, middleware.Check(middleware.Key{Headers: []string{"a b"}}), `Key.Headers has "a b"`)
	assert.ErrorContains(t, middleware.Check(middleware.Key{Headers: []string{""}}), "Key.Headers")
}

func TestLongKeysStayReadableAtTheirBeginning(t *testing.T) {
	key := keyOf(t, middleware.Key{}, get(t, "/search?"+strings.Repeat("x", 1000), "example.com"))
	assert.Contains(t, key, "example.com,7:/search,")
	assert.Less(t, len(key), 250)
	assert.NotEqual(t, key, keyOf(t, middleware.Key{}, get(t, "/search?"+strings.Repeat("x", 999)+"y", "example.com")))
}

func TestKeysAreInjective(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("a:,-1?&=/é")), 0, 6, -1)
	parts := rapid.SliceOfN(text, 5, 5)
	k := middleware.Key{Headers: []string{"H"}, Add: func(r *http.Request) (string, error) { return r.Header.Get("Added"), nil }}
	rapid.Check(t, func(t *rapid.T) {
		make := func(name string) ([]string, string) {
			p := parts.Draw(t, name)
			r := &http.Request{Method: "GET", Host: p[0], URL: &url.URL{Path: p[1], RawQuery: p[2]}, Header: http.Header{"H": {p[3]}, "Added": {p[4]}}}
			return p, keyOf(t, k, r)
		}
		a, keyA := make("a")
		b, keyB := make("b")
		if (keyA == keyB) != (strings.Join(a, "\x00") == strings.Join(b, "\x00")) {
			t.Fatalf("%q and %q: %q, %q", a, b, keyA, keyB)
		}
	})
}

// FuzzKey: requests that differ in host, path or query as they were written never share a key.
func FuzzKey(f *testing.F) {
	f.Add("/a?b", "h", "/a", "h")
	f.Add("/a%2Fb", "h", "/a/b", "h")
	f.Add("/a?", "h:80", "/a", "H:80")
	f.Add("/"+strings.Repeat("a", 600), "h", "/"+strings.Repeat("a", 601), "h")
	f.Add("//a", "1:", "/a", "1:/")
	f.Fuzz(func(t *testing.T, target, host, target2, host2 string) {
		u, err := url.ParseRequestURI(target)
		u2, err2 := url.ParseRequestURI(target2)
		if err != nil || err2 != nil || u.Host+u2.Host+u.Opaque+u2.Opaque != "" || u.User != nil || u2.User != nil {
			t.Skip()
		}
		a := keyOf(t, middleware.Key{}, &http.Request{Method: "GET", URL: u, Host: host})
		b := keyOf(t, middleware.Key{}, &http.Request{Method: "GET", URL: u2, Host: host2})
		if a == b && (!strings.EqualFold(host, host2) || u.RequestURI() != u2.RequestURI()) {
			t.Fatalf("%q at %q and %q at %q: %q", target, host, target2, host2, a)
		}
		if a != b && host == host2 && target == target2 || len(a) > middleware.LongestKey {
			t.Fatalf("%q at %q: %q, %q", target, host, a, b)
		}
	})
}

// A handler may show the URL that it was asked for. All that it has is in the key, or there is none.
func TestATargetThatSaysMoreThanTheKeyHasNone(t *testing.T) {
	for _, target := range []string{"https://example.com/a", "x://example.com/a", "http://user@example.com/a", "http://other.com/a"} {
		_, err := middleware.Of(middleware.Key{}, get(t, target, "example.com"))
		assert.Error(t, err, target)
	}
	outer := get(t, "/a", "example.com") // as some set it who believe a proxy
	outer.URL.Scheme, outer.URL.Host = "https", "example.com"
	assert.NotEmpty(t, keyOf(t, middleware.Key{}, outer))
}

// A key is seen by whoever sees Redis: what a header says may be a secret.
func TestAKeyDoesNotShowWhatHeadersSay(t *testing.T) {
	k := middleware.Key{Headers: []string{"Authorization"}}
	r := httptest.NewRequest(http.MethodGet, "/a", nil)
	r.Header.Set("Authorization", "Bearer secret")
	assert.NotContains(t, keyOf(t, k, r), "secret")
}
