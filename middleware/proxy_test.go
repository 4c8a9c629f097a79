package middleware_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/middleware"
)

// These are the rules of RFC 9111 as a client sees them who asks a reverse proxy with the middleware in it: bench/conformance runs a
// public suite against the same.

// proxied is what an origin says, each path its own, to its first request and to those that come after.
type proxied struct {
	mu    sync.Mutex
	paths map[string]*script
}

type script struct {
	status   int
	says     []string
	then     func(w http.ResponseWriter, r *http.Request) // from the second request on; nil: as the first
	requests int
}

// ServeHTTP numbers its answers: the body of the first is "1".
func (p *proxied) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	s := p.paths[r.URL.Path]
	s.requests++
	n := s.requests
	p.mu.Unlock()
	w.Header().Set("X-Number", fmt.Sprint(n))
	if n > 1 && s.then != nil {
		s.then(w, r)
		return
	}
	set(w, s.says...)
	w.WriteHeader(s.status)
	if s.status != http.StatusNoContent {
		_, _ = fmt.Fprint(w, n)
	}
}

// add has the origin say this at a new path.
func (p *proxied) add(status int, says []string, then http.HandlerFunc) (path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	path = fmt.Sprint("/", len(p.paths))
	p.paths[path] = &script{status: status, says: says, then: then}
	return path
}

func (p *proxied) asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paths[path].requests
}

// behindProxy is a site whose handler is a reverse proxy for the origin.
func behindProxy(t *testing.T) (*site, *proxied) {
	t.Helper()
	p := &proxied{paths: map[string]*script{}}
	origin := httptest.NewServer(p)
	to, err := url.Parse(origin.URL)
	require.NoError(t, err)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(func() { transport.CloseIdleConnections(); origin.Close() })
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	return serve(t, forward.ServeHTTP, options(middleware.Options{Heuristic: true, Targeted: []string{"CDN-Cache-Control"}})), p
}

// inSeconds is a date so many seconds from now.
func inSeconds(n int) string {
	return time.Now().Add(time.Duration(n) * time.Second).UTC().Format(http.TimeFormat)
}

// lines are header fields, separated by bars.
func lines(fields string) []string {
	if fields == "" {
		return nil
	}
	return strings.Split(fields, "|")
}

const long = "Cache-Control: max-age=3600"

func TestAResponseIsReusedAsLongAsItSays(t *testing.T) {
	s, origin := behindProxy(t)
	for says, reused := range map[string]bool{
		"":                                  false,
		long:                                true,
		"Cache-Control: MaX-aGe=3600":       true,
		"Cache-Control: max-age=0":          false,
		"Cache-Control: max-age=0003600":    true,
		"Cache-Control: max-age=2147483648": true,
		"Cache-Control: max-age=99999999999999999999":                         true,
		"Cache-Control: max-age=-3600":                                        false,
		"Cache-Control: max-age=3600.0":                                       false,
		"Cache-Control: max-age='3600'":                                       false,
		"Cache-Control: max-age = 3600":                                       false,
		`Cache-Control: max-age="3600"`:                                       true,
		`Cache-Control: x="max-age=3600"`:                                     false,
		`Cache-Control: x="max-age=0", max-age=3600`:                          true,
		`Cache-Control: x="a, no-store, b", max-age=3600`:                     true,
		"Cache-Control: max-age=3600, max-age=0":                              false,
		"Cache-Control: max-age=0|" + long:                                    false,
		"Cache-Control: s-maxage=3600":                                        true,
		"Cache-Control: max-age=0, s-maxage=3600":                             true,
		"Cache-Control: s-maxage=0, max-age=3600":                             false,
		"Cache-Control: x-max-age=3600":                                       false,
		"Cache-Control: max-age=3600, no-store":                               false,
		"Cache-Control: no-STORE, max-age=3600":                               false,
		"Cache-Control: max-age=3600, no-store=1":                             false,
		"Cache-Control: max-age=3600, no-cache":                               false,
		"Cache-Control: max-age=3600, private":                                false,
		"Cache-Control: max-age=3600, must-revalidate":                        true,
		"Cache-Control: max-age=3600, no-storefront":                          true,
		"Cache-Control: no-store, must-understand, s-maxage=9":                true,
		long + "|Age: 1800":                                                   true,
		long + "|Age: 3600":                                                   false,
		long + "|Age: 7200":                                                   false,
		long + "|Age: 2147483648":                                             false,
		long + "|Age: 0, 7200":                                                true,
		long + "|Age: 7200, 0":                                                false,
		long + "|Age: 0|Age: 7200":                                            true,
		long + "|Age: -7200":                                                  true,
		long + "|Age: abc":                                                    true,
		long + "|Date: " + inSeconds(-1800):                                   true,
		long + "|Date: " + inSeconds(-7200):                                   false,
		"Expires: " + inSeconds(3600):                                         true,
		"Expires: " + inSeconds(-3600):                                        false,
		"Expires: 0":                                                          false,
		"Expires: never":                                                      false,
		"Expires: " + strings.ToLower(inSeconds(3600)):                        true,
		"Expires: " + inSeconds(3600) + "|Age: 7200":                          false,
		"Expires: " + inSeconds(3600) + "|Date: " + inSeconds(7200):           false,
		"Expires: " + inSeconds(3600) + "|Expires: 0":                         false,
		long + "|Expires: " + inSeconds(-3600):                                true,
		"Cache-Control: max-age=0|Expires: " + inSeconds(3600):                false,
		"Cache-Control: s-maxage=0|Expires: " + inSeconds(3600):               false,
		"Cache-Control: x|Expires: " + inSeconds(3600):                        true,
		"CDN-Cache-Control: max-age=3600|Cache-Control: no-store":             true,
		"CDN-Cache-Control: max-age=3600|Expires: 0":                          true,
		"CDN-Cache-Control: max-age=0|" + long:                                false,
		"CDN-Cache-Control: no-store|" + long:                                 false,
		"CDN-Cache-Control: private|" + long:                                  false,
		"CDN-Cache-Control: no-cache|" + long:                                 false,
		"CDN-Cache-Control: max-age=3600|Age: 7200":                           false,
		"CDN-Cache-Control: max-age=0, &|" + long:                             true,
		"CDN-Cache-Control: max-age=3600;a, b=x|Cache-Control: no-store":      true,
		`CDN-Cache-Control: max-age="3600"|Cache-Control: max-age=1`:          false,
		"CDN-Cache-Control: Max-Age=3600|Cache-Control: max-age=0":            false,
		"Set-Cookie: a=b|" + long:                                             false,
		"Vary: *|" + long:                                                     false,
		"Vary: X-A, *|" + long:                                                false,
		"Vary: , *|" + long:                                                   false,
		"Vary: X-A|Vary: *|" + long:                                           false,
		"Last-Modified: " + inSeconds(-100_000):                               true,
		"Last-Modified: " + inSeconds(-100_000) + "|Cache-Control: max-age=0": false,
		"Last-Modified: " + inSeconds(-9):                                     false,
	} {
		path := origin.add(200, lines(says), nil)
		assert.Equal(t, "1", s.get(path).body, says)
		want := map[bool]string{true: "1", false: "2"}[reused]
		assert.Equal(t, want, s.get(path).body, says)
	}
}

func TestAnyStatusWithALifetimeIsReusedAndSomeWithout(t *testing.T) {
	s, origin := behindProxy(t)
	guessed := "Last-Modified: " + inSeconds(-100_000)
	for status, unsaid := range map[int]bool{
		200: true, 201: false, 202: false, 203: true, 204: true, 299: false, 300: true, 301: true, 302: false, 303: false, 307: false,
		308: true, 400: false, 401: false, 403: false, 404: true, 405: true, 410: true, 414: true, 429: false, 451: false, 499: false,
		500: false, 501: true, 502: false, 503: false, 504: false, 599: false,
	} {
		isError := status == 500 || 502 <= status && status <= 504 // which lasts only as long as it says itself
		for says, reused := range map[string]bool{
			long: true, long + "|Age: 7200": false, guessed: unsaid, guessed + "|Cache-Control: public": !isError,
		} {
			path := origin.add(status, lines(says), nil)
			assert.Equal(t, status, s.get(path).status)
			a := s.get(path)
			assert.Equal(t, status, a.status)
			want := map[bool]string{true: "1", false: "2"}[reused]
			assert.Equal(t, want, a.header.Get("X-Number"), "%d %s", status, says)
		}
	}
	path := origin.add(200, lines(long+", must-understand"), nil)
	s.get(path)
	assert.True(t, s.get(path).hit())
	path = origin.add(226, lines(long+", must-understand"), nil)
	s.get(path)
	assert.False(t, s.get(path).hit(), "a status of which it must know more")
}
