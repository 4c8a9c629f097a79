package middleware_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/middleware"
)

func endToEnd(h http.Header, drop ...string) http.Header {
	return middleware.EndToEnd(h, middleware.ParseCacheControl(h["Cache-Control"]), drop...)
}

func TestFieldsOfOneConnectionArentStored(t *testing.T) {
	for _, field := range []string{
		"Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
		"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection",
	} {
		assert.Equal(t, header("X: 1"), endToEnd(header("X: 1", field+": 2")), field)
	}
	assert.Equal(t, header("C: 3"), endToEnd(header("Connection: a, close", "Connection: ,B", "A: 1", "B: 2", "C: 3"))) // and those it lists
	assert.Equal(t, header("C: 3"), endToEnd(header("Trailer: a", "A: 1", "C: 3", "Trailer:x: 9")))
	assert.Equal(t, header("C: 3"), endToEnd(http.Header{"C": {"3"}, "Trailer:X": {"9"}}))
}

func TestAllOtherFieldsAreStored(t *testing.T) {
	h := header("Content-Foo: 1", "X-Test: 2", "ETag: \"a\"", "Content-Length: 36", "Content-Security-Policy: x", "Set-Cookie2: a=b",
		"Content-Range: odd", "Clear-Site-Data: cache", "Public-Key-Pins: x", "Content-Md5: x", "Set-Cookie: a=b", "Set-Cookie: c=d", "Cache-Control: max-age=3")
	assert.Equal(t, h, endToEnd(h))
}

func TestFieldsThatAPrivateOrNoCacheNamesArentStored(t *testing.T) {
	cc := `Cache-Control: max-age=3, no-cache="a, set-cookie"`
	assert.Equal(t, header(cc, "B: 2"), endToEnd(header(cc, "A: 1", "B: 2", "Set-Cookie: x=y")))
	cc = `Cache-Control: private="b"`
	assert.Equal(t, header(cc, "A: 1"), endToEnd(header(cc, "A: 1", "B: 2")))
	assert.Equal(t, header("A: 1"), endToEnd(header("A: 1", "Set-Cookie: x=y"), "Set-Cookie"))
}

func TestAStoredHeaderSharesNothingWithTheHandlers(t *testing.T) {
	h := header("A: 1", "A: 2")
	kept := endToEnd(h)
	h["A"][0] = "changed"
	h.Set("B", "new")
	assert.Equal(t, header("A: 1", "A: 2"), kept)

	to := header("A: 0", "Z: 26")
	middleware.SetFields(to, kept)
	to["A"][0] = "changed"
	assert.Equal(t, header("A: 1", "A: 2"), kept)
	assert.Equal(t, "26", to.Get("Z"))
	assert.NotNil(t, endToEnd(nil))
}

func TestNamesInOtherFormsAreFoundToo(t *testing.T) {
	h := http.Header{"set-cookie": {"b"}, "Set-Cookie": {"a"}, "A": {"1"}}
	assert.Equal(t, http.Header{"Set-Cookie": {"a", "b"}, "A": {"1"}}, middleware.Canonical(h))
	h = header("A: 1")
	middleware.Canonical(h).Set("A", "2")
	assert.Equal(t, header("A: 2"), h, "nothing to do")
}

func TestAFieldInAnotherFormCountsAsWell(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["set-cookie"] = []string{"session=1"}
		say(w, "own", minute)
	})
	s.get("/a")
	assert.False(t, s.get("/a").hit())
}
