package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// expired is what a response says that has outlived its lifetime when it comes: it may be kept, but not reused unasked.
const expired = long + "|Age: 7200"

func TestEachFieldOfAStoredResponseIsReturnedButThoseOfAConnection(t *testing.T) {
	s, origin := behindProxy(t)
	kept := []string{
		"Accept-Ranges: bytes", "Allow: GET", "Clear-Site-Data: \"cache\"", "Content-Encoding: x", "Content-Language: en", "Content-Location: /x",
		"Content-Md5: x", "Content-Security-Policy: default-src 'self'", "Content-Type: text/html", "Etag: \"x\"", "Expires: " + inSeconds(60),
		"Last-Modified: " + inSeconds(-60), "Link: </x>", "Location: /x", "P3p: x", "Pragma: x", "Public-Key-Pins: x", "Referrer-Policy: x", "Retry-After: 1",
		"Server: x", "Strict-Transport-Security: x", "Trailing: x", "Vary: X-A", "Warning: 110 - x", "Www-Authenticate: x", "X-Frame-Options: deny",
		"X-Unknown: a, b", "X-Xss-Protection: 1",
	}
	dropped := []string{"Keep-Alive: x", "Proxy-Authenticate: x", "Proxy-Authentication-Info: x", "Proxy-Connection: x", "Te: x", "X-Listed: x"}
	path := origin.add(200, append(append(kept, dropped...), long, "Connection: X-Listed"), nil)
	s.get(path)
	a := s.get(path)
	assert.True(t, a.hit())
	for field := range header(kept...) {
		assert.Equal(t, header(kept...)[field], a.header[field], field)
	}
	for field := range header(append(dropped, "Connection: x")...) {
		assert.Empty(t, a.header[field], field)
	}
}

func TestAnExpiredResponseIsConfirmedByItsValidators(t *testing.T) {
	s, origin := behindProxy(t)
	modified := inSeconds(-100_000)
	for validator, asks := range map[string]string{
		`ETag: "x"`: `If-None-Match: "x"`, `ETag: W/"x"`: `If-None-Match: W/"x"`, "Last-Modified: " + modified: "If-Modified-Since: " + modified,
	} {
		name, value, _ := strings.Cut(asks, ": ")
		path := origin.add(200, lines(expired+"|"+validator+"|X-Updated: 1|X-Kept: 1|Content-Language: x"), func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(name) != value {
				w.WriteHeader(500)
				return
			}
			set(w, "X-Updated: 2", "X-New: 2", "Content-Language: y", long, validator)
			w.WriteHeader(http.StatusNotModified)
		})
		s.get(path)
		for i := range 2 {
			a := s.get(path)
			assert.Equal(t, 200, a.status, validator)
			assert.Equal(t, "1", a.body, validator)
			for field, value := range map[string]string{"X-Updated": "2", "X-New": "2", "X-Kept": "1", "Content-Language": "y", "Content-Length": "1"} {
				assert.Equal(t, value, a.header.Get(field), "%s, %s", validator, field)
			}
			assert.Equal(t, i == 1, a.hit(), validator)
		}
		assert.Equal(t, 2, origin.asked(path), validator)
	}
}

func TestWithoutValidatorsTheOriginIsAskedForTheWhole(t *testing.T) {
	s, origin := behindProxy(t)
	for _, validator := range []string{"", "ETag: x", "Last-Modified: long ago"} {
		path := origin.add(200, lines(expired+"|"+validator), func(w http.ResponseWriter, r *http.Request) {
			say(w, r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since"))
		})
		s.get(path)
		assert.Empty(t, s.get(path).body, validator)
	}
}

func TestAnExpiredResponseStandsInForABrokenOriginUnlessItMayNot(t *testing.T) {
	s, origin := behindProxy(t)
	for says, stands := range map[string]bool{
		expired:             false,                                                                              // its age has used up the time in which it would
		long + "|Age: 3599": true, "Expires: " + inSeconds(1): true, long + ", must-revalidate|Age: 3599": true, // nothing has run out yet
		expired + "|ETag: \"x\"":                                                       false,
		"Cache-Control: max-age=3600, stale-if-error=9000|Age: 7200":                   true,
		"Cache-Control: max-age=3600, stale-if-error=9000, must-revalidate|Age: 7200":  false,
		"Cache-Control: max-age=3600, stale-if-error=9000, proxy-revalidate|Age: 7200": false,
		"Cache-Control: s-maxage=3600, stale-if-error=9000|Age: 7200":                  false,
		"Cache-Control: no-cache, stale-if-error=9000":                                 false,
	} {
		for name, fail := range map[string]http.HandlerFunc{
			"503":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
			"closes": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		} {
			path := origin.add(200, lines(says), fail)
			s.get(path)
			assert.Equal(t, map[bool]int{true: 200, false: 502}[stands], min(502, s.get(path).status), "%s, %s", says, name)
		}
	}
}

func TestVaryChoosesAmongStoredResponses(t *testing.T) {
	s, origin := behindProxy(t)
	for _, c := range []struct {
		vary, first, second string
		same                bool
	}{
		{"X-A", "X-A: 1", "X-A: 1", true},
		{"X-A", "X-A: 1", "X-A: 2", false},
		{"X-A", "X-A: 1", "", false},
		{"X-A", "", "", true},
		{"X-A", "", "X-A: ", false},
		{"x-a", "X-A: 1", "X-A: 2", false},
		{"X-A", "X-A: 1|X-A: 2", "X-A: 1, 2", true},
		{"X-A", "X-A: 1,2", "X-A: 1 ,\t2", true},
		{"X-A", "X-A: 1, 2", "X-A: 2, 1", false},
		{"X-A", "X-B: 1", "X-B: 2", true},
		{"X-A, X-B", "X-A: 1|X-B: 2", "X-A: 1|X-B: 2", true},
		{"X-A, X-B", "X-A: 1|X-B: 2", "X-A: 2|X-B: 1", false},
		{"X-A, X-B", "X-A: 1|X-B: 2", "X-A: 1", false},
		{"X-A|Vary: X-B", "X-A: 1|X-B: 2", "X-A: 1|X-B: 3", false},
		{"Accept-Language", "Accept-Language: en, de", "Accept-Language: EN,de", true},
		{"Accept-Language", "Accept-Language: en, de", "Accept-Language: de, en", false},
		{"Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br;q=0.5, gzip", true},
	} {
		path := origin.add(200, lines(long+"|Vary: "+c.vary), nil)
		s.get(path, lines(c.first)...)
		assert.Equal(t, c.same, s.get(path, lines(c.second)...).body == "1", c)
		assert.Equal(t, "1", s.get(path, lines(c.first)...).body, "%v: and none replaces another", c)
	}
}

func TestConditionsAndRangesAreAnsweredFromWhatIsStored(t *testing.T) {
	s, origin := behindProxy(t)
	modified := inSeconds(-100_000)
	path := origin.add(200, lines(long+"|ETag: \"x\"|Last-Modified: "+modified), nil)
	s.get(path)
	for ask, status := range map[string]int{
		`If-None-Match: "x"`: 304, `If-None-Match: W/"x"`: 304, `If-None-Match: "y", "x"`: 304, `If-None-Match: *`: 304, `If-None-Match: "y"`: 200,
		"If-Modified-Since: " + modified: 304, "If-Modified-Since: " + inSeconds(-9): 304, "If-Modified-Since: " + inSeconds(-200_000): 200,
		"If-None-Match: \"y\"|If-Modified-Since: " + modified: 200,
		"Range: bytes=0-0": 206, "Range: bytes=-1": 206, "Range: bytes=0-": 206, "Range: bytes=5-": 416, "Range: lines=0-0": 200,
		"Range: bytes=0-0|If-Range: \"x\"":      206,
		"Range: bytes=0-0|If-Range: \"y\"":      200,
		"Range: bytes=0-0|If-None-Match: \"x\"": 304,
	} {
		a := s.get(path, lines(ask)...)
		assert.Equal(t, status, a.status, ask)
		assert.Equal(t, status != 416, a.header.Get("ETag") == `"x"`, ask)
	}
	assert.Equal(t, 1, origin.asked(path))
}

func TestAPartIsNotStored(t *testing.T) {
	s, origin := behindProxy(t)
	path := origin.add(206, lines(long+"|Content-Range: bytes 0-0/9"), func(w http.ResponseWriter, _ *http.Request) { say(w, "the whole") })
	assert.Equal(t, 206, s.get(path, "Range: bytes=0-0").status)
	assert.Equal(t, "the whole", s.get(path).body)
	path = origin.add(206, lines(long+"|Content-Range: bytes 0-0/9"), nil) // though nobody wanted a part
	s.get(path)
	assert.Equal(t, "2", s.get(path).body)
}

func TestAChangeInvalidatesItsTargetAndWhatItNamesOfTheSameOrigin(t *testing.T) {
	s, origin := behindProxy(t)
	for _, c := range []struct {
		method, field string // %s is another path
		status        int
		self, other   bool // are invalid
	}{
		{"POST", "Location: %s", 200, true, true},
		{"PUT", "Content-Location: %s", 204, true, true},
		{"DELETE", "Location: http://site.test%s", 303, true, true},
		{"BREW", "", 200, true, false},
		{"POST", "Location: http://elsewhere.test%s", 200, true, false},
		{"POST", "Location: %s", 404, false, false},
		{"POST", "Location: %s", 500, false, false},
		{"OPTIONS", "Location: %s", 200, false, false},
	} {
		other := origin.add(200, lines(long), nil)
		change := func(w http.ResponseWriter, r *http.Request) {
			if r.Method == c.method {
				set(w, lines(strings.ReplaceAll(c.field, "%s", other))...)
				w.WriteHeader(c.status)
				return
			}
			say(w, "anew", long)
		}
		self := origin.add(200, lines(long), change)
		s.get(self)
		s.get(other)
		assert.Equal(t, c.status, s.send(c.method, self).status)
		assert.Equal(t, !c.self, s.get(self).hit(), c)
		assert.Equal(t, !c.other, s.get(other).hit(), c)
	}
}

func TestAuthorisedResponsesAreReusedIfTheySaySo(t *testing.T) {
	s, origin := behindProxy(t)
	for says, reused := range map[string]bool{
		long: false, long + ", public": true, long + ", must-revalidate": true, "Cache-Control: s-maxage=3600": true,
		long + ", public, private": false, "CDN-Cache-Control: max-age=3600|Cache-Control: public": false,
	} {
		path := origin.add(200, lines(says), nil)
		s.get(path, "Authorization: x")
		assert.Equal(t, reused, s.get(path).body == "1", says)
	}
}

func TestInformationalResponsesComeThroughAProxyBeforeTheStoredOne(t *testing.T) {
	s, origin := behindProxy(t)
	hint := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusProcessing)
		set(w, "Link: </x>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		say(w, "hello", long)
	}
	path := origin.add(500, nil, hint)
	s.get(path)
	for _, want := range []string{"[102 103] 200", "[] 200"} { // made, and reused
		early := []int{}
		r := s.request(0, "GET", path)
		a := s.do(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { early = append(early, code); return nil },
		})))
		assert.Equal(t, want, fmt.Sprint(early, " ", a.status))
		assert.Empty(t, a.header.Get("Link"))
	}
}
