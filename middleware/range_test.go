package middleware_test

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/middleware"
)

var ours = []string{"Content-Type: text/x-ours", `ETag: "a"`, "Last-Modified: " + at(-9), "Date: " + at(0), "A: 1", "Content-Length: 11"}

// part asks for a part of what is stored. wanted is false if the whole is the answer.
func part(r *http.Request, h http.Header, body string) (resp *http.Response, wanted bool) {
	if !middleware.WantsPart(r, http.StatusOK, h, len(body)) {
		return nil, false
	}
	w := httptest.NewRecorder()
	w.Header().Set("Outer", "1")
	middleware.ServePart(w, r, h, []byte(body))
	return w.Result(), true
}

func TestAPartIsCutFromTheWhole(t *testing.T) {
	for asked, want := range map[string]string{
		"bytes=0-1": "01", "bytes=1-": "123456789A", "bytes=-1": "A", "bytes=-99": "0123456789A", "bytes=3-99": "3456789A", "bytes=0-0,0-0": "0",
	} {
		resp, ok := part(asking("Range: "+asked), header(ours...), "0123456789A")
		require.True(t, ok, asked)
		if strings.Contains(asked, ",") {
			assert.Contains(t, resp.Header.Get("Content-Type"), "multipart/byteranges")
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		assert.Equal(t, want, string(body), asked)
		assert.Equal(t, http.StatusPartialContent, resp.StatusCode)
		assert.Equal(t, fmt.Sprint(len(want)), resp.Header.Get("Content-Length"), asked)
		for _, line := range append(ours[:5:5], "Outer: 1") {
			name, value, _ := strings.Cut(line, ": ")
			assert.Equal(t, value, resp.Header.Get(name), "%s: %s", asked, name)
		}
	}
}

func TestAPartThatIsntThereIsToldSo(t *testing.T) {
	for _, asked := range []string{"bytes=11-", "bytes=99-100", "bytes=2-1", "bytes=11-,12-"} {
		resp, ok := part(asking("Range: "+asked), header(ours...), "0123456789A")
		require.True(t, ok, asked)
		assert.Equal(t, http.StatusRequestedRangeNotSatisfiable, resp.StatusCode, asked)
	}
}

func TestTheWholeIsTheAnswerWhereAPartWouldBeWrong(t *testing.T) {
	h := header(ours...)
	for name, r := range map[string]*http.Request{
		"not asked for":        asking(),
		"in other units":       asking("Range: lines=0-1"),
		"of nothing":           asking("Range: bytes=-0"),
		"of no range":          asking("Range: bytes=,"),
		"malformed":            asking("Range: bytes=0-1,x"),
		"malformed, signed":    asking("Range: bytes=+1-2"),
		"too far":              asking("Range: bytes=0-18446744073709551616"),
		"too many":             asking("Range: bytes=" + strings.Repeat("0-0,", 17)),
		"twice":                asking("Range: bytes=0-1", "Range: bytes=2-3"),
		"of another body":      asking("Range: bytes=0-1", `If-Range: "b"`),
		"of a weak one":        asking("Range: bytes=0-1", `If-Range: W/"a"`),
		"of another time":      asking("Range: bytes=0-1", "If-Range: "+at(-8)),
		"of a later time":      asking("Range: bytes=0-1", "If-Range: "+at(0)),
		"of nonsense":          asking("Range: bytes=0-1", "If-Range: a"),
		"of an empty":          asking("Range: bytes=0-1", "If-Range:"),
		"of two bodies":        asking("Range: bytes=0-1", `If-Range: "a"`, `If-Range: "b"`),
		"of the same time, ×2": asking("Range: bytes=0-1", "If-Range: "+at(-9), "If-Range: "+at(-9)),
	} {
		_, ok := part(r, h, "0123456789A")
		assert.False(t, ok, name)
	}
	head := asking("Range: bytes=0-1")
	head.Method = http.MethodHead
	assert.False(t, middleware.WantsPart(head, 200, h, 11))
	assert.False(t, middleware.WantsPart(asking("Range: bytes=0-1"), 404, h, 11))
	assert.False(t, middleware.WantsPart(asking("Range: bytes=-1"), 200, h, 0), "an empty body has no parts")
	assert.False(t, middleware.WantsPart(asking("Range: bytes=0-1", `If-Range: W/"a"`), 200, header(`ETag: W/"a"`), 11))
	assert.False(t, middleware.WantsPart(asking("Range: bytes=0-1", "If-Range: "+at(0)), 200, header("Last-Modified: "+at(0), "Date: "+at(0)), 11), "changed in the second that it was made in")
	assert.False(t, middleware.WantsPart(asking("Range: bytes=0-1", "If-Range: "+at(-9)), 200, header("Last-Modified: "+at(-9)), 11))
}

func TestAPartOfTheSameBytesIsGiven(t *testing.T) {
	for _, line := range []string{`If-Range: "a"`, "If-Range: " + at(-9)} {
		resp, ok := part(asking("Range: bytes=0-1", line), header(ours...), "0123456789A")
		require.True(t, ok, line)
		assert.Equal(t, http.StatusPartialContent, resp.StatusCode, line)
	}
}

func TestConditionsHaveHadTheirSayBeforeAPartIsCut(t *testing.T) {
	resp, ok := part(asking("Range: bytes=0-1", `If-None-Match: "a"`, `If-Match: "b"`), header(ours...), "0123456789A")
	require.True(t, ok)
	assert.Equal(t, http.StatusPartialContent, resp.StatusCode)
}

// FuzzRange: whatever is asked for, every byte of the answer is the byte of the body that it says it is.
func FuzzRange(f *testing.F) {
	for _, asked := range []string{"bytes=0-1", "bytes=-1", "bytes=5-", "bytes=0-0,2-3", "bytes=", "bytes=9-1,-0", "bytes=-0", "bytes= 1 - 2 ,,", "bytes=0-18446744073709551616", "x"} {
		f.Add(asked, "", []byte("0123456789A"))
	}
	f.Add("bytes=0-", `"a"`, []byte{})
	f.Fuzz(func(t *testing.T, asked, ifRange string, body []byte) {
		r := asking()
		r.Header["Range"] = []string{asked}
		if ifRange != "" {
			r.Header["If-Range"] = []string{ifRange}
		}
		resp, ok := part(r, header(ours...), string(body))
		if !ok {
			return
		}
		got, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		switch kind, params, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); {
		case resp.StatusCode == http.StatusOK:
			require.True(t, bytes.Equal(body, got))
		case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		case kind == "multipart/byteranges":
			for parts := multipart.NewReader(bytes.NewReader(got), params["boundary"]); ; {
				p, err := parts.NextRawPart()
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
				got, err := io.ReadAll(p)
				require.NoError(t, err)
				isPart(t, body, got, p.Header.Get("Content-Range"))
			}
		default:
			require.Equal(t, http.StatusPartialContent, resp.StatusCode)
			isPart(t, body, got, resp.Header.Get("Content-Range"))
		}
	})
}

func isPart(t *testing.T, body, got []byte, contentRange string) {
	t.Helper()
	var first, last, size int
	_, err := fmt.Sscanf(contentRange, "bytes %d-%d/%d", &first, &last, &size)
	require.NoError(t, err, contentRange)
	require.Equal(t, len(body), size)
	require.True(t, 0 <= first && first <= last && last < size, contentRange)
	require.Equal(t, body[first:last+1], got)
}
