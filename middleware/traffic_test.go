package middleware_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/bellwether-cache/bellwether/middleware"
)

// claim is the body of a response: for whom and of what it was made. Its header says for whom else it may be.
type claim struct {
	ID      string // of the request
	Path    string
	Version int64 // of what is at the path, when the handler began
	Fields  map[string]string
}

// town is a handler of paths that change, whose answers are of every kind, by chance.
type town struct {
	mu       sync.Mutex
	versions map[string]int64 // by path
	heard    map[string]int64 // of which a client knows
}

// streets are what answers vary by; a path begins with the number of its street.
var streets = [...]string{"", "X-A", "X-B, X-A", "Accept-Encoding"}

var forAll = []string{
	"max-age=1", "max-age=60", "public, max-age=60", "s-maxage=1", "max-age=0, stale-while-revalidate=60", "max-age=0, stale-if-error=60",
	"no-cache", "max-age=60, must-revalidate",
}

var forOne = []string{
	"Cache-Control: no-store", "Cache-Control: private, max-age=60", "Set-Cookie: a=b|" + minute, "Vary: *|" + minute, "X-Nothing: said",
}

// asked are the fields of requests, with what they may be.
var asked = map[string][]string{
	"X-A": {"", "1", "2"}, "X-B": {"", "1"}, "Accept-Encoding": {"", "gzip", "br"}, "Authorization": rarely("a", "b"), "Cookie": rarely("a", "b"),
	"Cache-Control": rarely("no-cache", "max-age=0"), "Range": rarely("bytes=0-"),
}

func rarely(values ...string) []string { return append(values, make([]string, 10)...) }

func (h *town) version(path string, more int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.versions[path] += more
	return h.versions[path]
}

// hear says which version a client knows of, at least this one.
func (h *town) hear(path string, version int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard[path] = max(h.heard[path], version)
	return h.heard[path]
}

func (h *town) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == "POST" {
		set(w, fmt.Sprint("X-Version: ", h.version(r.URL.Path, 1)))
		return
	}
	c := claim{r.Header.Get("X-Id"), r.URL.Path, h.version(r.URL.Path, 0), map[string]string{}}
	for field := range asked {
		c.Fields[field] = r.Header.Get(field)
	}
	time.Sleep(rand.N(5 * time.Millisecond))
	vary := streets[r.URL.Path[1]-'0']
	if vary != "" {
		set(w, "Vary: "+vary)
	}
	switch rand.IntN(60) {
	case 0:
		panic(http.ErrAbortHandler)
	case 1:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case 2:
		set(w, lines(forOne[rand.IntN(len(forOne))])...)
	default:
		tag := c.tag(vary)
		set(w, "Cache-Control: "+forAll[rand.IntN(len(forAll))], "ETag: "+tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	c.write(w)
}

// tag is another for all who may get another answer.
func (c claim) tag(vary string) string {
	tag := fmt.Sprint(c.Version)
	for _, field := range strings.Split(vary+", Authorization, Cookie", ", ") {
		tag += "-" + c.Fields[field]
	}
	return `"` + tag + `"`
}

// write does it in two parts, as handlers may.
func (c claim) write(w http.ResponseWriter) {
	body, _ := json.Marshal(c)
	if rand.IntN(4) == 0 {
		set(w, "Content-Length: "+strconv.Itoa(len(body)))
	}
	_, _ = w.Write(body[:10])
	if rand.IntN(4) == 0 {
		_ = http.NewResponseController(w).Flush()
	}
	time.Sleep(rand.N(3 * time.Millisecond))
	_, _ = w.Write(body[10:])
}

func TestInAnyTrafficNobodyGetsWhatIsNotForHim(t *testing.T) {
	_, real := onRedis(t)
	for name, change := range map[string]func(*setup){
		"in memory": replicas(2), "obeying": func(s *setup) { s.replicas, s.o = 2, middleware.Options{Obey: true, Tag: true} }, "on Redis": real,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &town{versions: map[string]int64{}, heard: map[string]int64{}}
			s := serve(t, h.ServeHTTP, change)
			var hits, collapsed, confirmed atomic.Int64
			var wg sync.WaitGroup
			for worker := range 12 {
				wg.Go(func() {
					for i := range 100 {
						path := fmt.Sprintf("/%d/%d", i%len(streets), i/25)
						how := h.visit(t, s, path, fmt.Sprint(worker, "-", i))
						for word, n := range map[string]*atomic.Int64{";hit": &hits, ";collapsed": &collapsed, "fwd-status=304": &confirmed} {
							if strings.Contains(how, word) {
								n.Add(1)
							}
						}
					}
				})
			}
			wg.Wait()
			t.Log(hits.Load(), "hits,", collapsed.Load(), "collapsed,", confirmed.Load(), "confirmed,", s.runs.Load(), "runs of the handler")
			assert.NotZero(t, hits.Load())
			assert.NotZero(t, collapsed.Load())
			assert.NotZero(t, confirmed.Load())
		})
	}
}

// visit sends a request and judges the answer.
func (h *town) visit(t *testing.T, s *site, path, id string) (how string) {
	replica := rand.IntN(2)
	if rand.IntN(20) == 0 {
		a := s.do(s.request(replica, "POST", path))
		version, err := strconv.ParseInt(a.header.Get("X-Version"), 10, 64)
		assert.NoError(t, err)
		h.hear(path, version)
		return a.how()
	}
	r := s.request(replica, "GET", path, "X-Id: "+id)
	for field, values := range asked {
		if v := values[rand.IntN(len(values))]; v != "" {
			r.Header.Set(field, v)
		}
	}
	known := h.hear(path, 0)
	a := s.do(r)
	if a.err != nil || a.status == http.StatusServiceUnavailable {
		return a.how()
	}
	var c claim
	assert.NoError(t, json.Unmarshal([]byte(a.body), &c), "%d %q", a.status, a.body)
	assert.Equal(t, path, c.Path)
	assert.GreaterOrEqual(t, c.Version, known, "it was changed before")
	if reason := c.wrongFor(r, a); reason != "" {
		assert.Fail(t, reason, "%s asked %v\nand got %v\n%s", id, r.Header, a.header, a.body)
	}
	return a.how()
}

// wrongFor says why the sender of r should not have got the answer.
func (c claim) wrongFor(r *http.Request, a answer) string {
	says := func(field, what string) bool { return strings.Contains(strings.Join(a.header[field], ","), what) }
	sent := func(field string) bool { return r.Header.Get(field)+c.Fields[field] != "" }
	for _, field := range strings.Split(strings.Join(a.header["Vary"], ", "), ", ") {
		if field != "*" && r.Header.Get(field) != c.Fields[field] {
			return "it is for another " + field
		}
	}
	own := c.ID == r.Header.Get("X-Id") || strings.Contains(a.how(), "fwd-status=304") // or the handler told him that it is as good
	switch {
	case own, says("Cache-Control", "public"), says("Cache-Control", "s-maxage"):
	case says("Cache-Control", "no-store"), says("Cache-Control", "private"), says("Set-Cookie", "a"), says("Vary", "*"), says("X-Nothing", "said"):
		return "it is for one alone"
	case says("Cache-Control", "no-cache"):
		return "each must ask the handler"
	case sent("Cookie"):
		return "it is somebody's with a Cookie"
	case sent("Authorization") && !says("Cache-Control", "must-revalidate"):
		return "it is somebody's with Authorization"
	}
	return ""
}
