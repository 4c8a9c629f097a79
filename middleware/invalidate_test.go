package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/middleware"
)

// invalid is what the answer to a request for /dir/a?q=1 invalidates.
func invalid(method string, status int, lines ...string) (targets []string) {
	r := httptest.NewRequest(http.MethodGet, "/dir/a?q=1", nil)
	r.Method, r.Host = method, "example.com"
	for _, g := range middleware.Invalidated(r, status, header(lines...), "http") {
		targets = append(targets, g.Method+" "+g.Host+g.URL.String())
	}
	return targets
}

const itself = "GET example.com/dir/a?q=1"

func TestAnUnsafeRequestInvalidatesItsTarget(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "UNHEARD-OF", "get"} {
		for _, status := range []int{200, 201, 204, 299, 303, 399} {
			assert.Equal(t, []string{itself}, invalid(method, status), "%s %d", method, status)
		}
		for _, status := range []int{0, 101, 400, 404, 412, 500, 503, 599} {
			assert.Empty(t, invalid(method, status), "%s %d", method, status)
		}
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "QUERY", ""} {
		assert.Empty(t, invalid(method, 200), method)
	}
}

func TestItInvalidatesWhatItSaysItMade(t *testing.T) {
	for location, want := range map[string]string{
		"b": "/dir/b", "/b?x": "/b?x", "../b#part": "/b", "http://example.com/b": "/b", "http://EXAMPLE.com:80/b%2Fc": "/b%2Fc", "//example.com/b": "/b", "?q=2": "/dir/a?q=2",
	} {
		for _, field := range []string{"Location", "Content-Location"} {
			assert.Equal(t, []string{itself, "GET example.com" + want}, invalid("POST", 201, field+": "+location), location)
		}
	}
	assert.Equal(t, []string{itself, "GET example.com/b", "GET example.com/c"}, invalid("POST", 201, "Content-Location: /c", "Location: /b"))
}

func TestItInvalidatesNothingOfOthers(t *testing.T) {
	for _, location := range []string{"", "https://example.com/b", "http://example.com:8080/b", "http://example.org/b", "http://sub.example.com/b", "mailto:a@b", "http:b", "http://[", "%zz"} {
		assert.Equal(t, []string{itself}, invalid("POST", 201, "Location: "+location), location)
	}
}

func TestWhatIsInvalidatedHasTheKeyOfItsGet(t *testing.T) {
	post := httptest.NewRequest(http.MethodPost, "/dir/a", nil)
	stored := keyOf(t, middleware.Key{}, httptest.NewRequest(http.MethodGet, "/dir/b?x=1", nil))
	gets := middleware.Invalidated(post, 200, header("Location: b?x=1"), "http")
	assert.Equal(t, stored, keyOf(t, middleware.Key{}, gets[1]))
	assert.Equal(t, http.MethodPost, post.Method)
}
