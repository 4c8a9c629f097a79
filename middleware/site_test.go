package middleware_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

const (
	patience = 10 * time.Second // for what comes
	tick     = 2 * time.Millisecond
)

// site is a handler behind the middleware, on real servers: replicas over one store.
type site struct {
	t       *testing.T
	servers []*httptest.Server
	caches  []*cache.Cache[middleware.Response]
	client  *http.Client
	runs    atomic.Int64 // of the handler

	made, arrived atomic.Int64 // requests
	logs          logs
}

// setup is what a test may change of a site.
type setup struct {
	replicas int
	store    func() cache.Store
	cache    cache.Options[middleware.Response]
	o        middleware.Options
	around   func(http.Handler) http.Handler // the middleware: outer handlers
}

func serve(t *testing.T, h http.HandlerFunc, change ...func(*setup)) *site {
	t.Helper()
	memory := cache.NewMemory()
	c := &setup{replicas: 1, store: func() cache.Store { return memory }}
	c.cache.Policy = stale.Policy{Fresh: time.Minute}
	for _, f := range change {
		f(c)
	}
	s := &site{t: t, client: &http.Client{
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.runs.Add(1); h(w, r) })
	for range c.replicas {
		responses, err := cache.New(c.store(), c.cache)
		require.NoError(t, err)
		all := middleware.New(responses, c.o)(counted)
		if c.around != nil {
			all = c.around(all)
		}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.arrived.Add(1)
			all.ServeHTTP(w, r)
		}))
		server.Config.ErrorLog = s.logs.logger()
		server.Start()
		t.Cleanup(func() {
			s.client.CloseIdleConnections()
			server.CloseClientConnections()
			server.Close()
			assert.NoError(t, responses.Close())
		})
		s.servers, s.caches = append(s.servers, server), append(s.caches, responses)
	}
	return s
}

func replicas(n int) func(*setup)                           { return func(s *setup) { s.replicas = n } }
func options(o middleware.Options) func(*setup)             { return func(s *setup) { s.o = o } }
func policy(p stale.Policy) func(*setup)                    { return func(s *setup) { s.o.Policy = p } }
func limit(d time.Duration) func(*setup)                    { return func(s *setup) { s.cache.Limit = d } }
func around(f func(http.Handler) http.Handler) func(*setup) { return func(s *setup) { s.around = f } }

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	length int64
	err    error // of the body, too
	took   time.Duration
}

func (a answer) how() string { return a.header.Get("Cache-Status") }
func (a answer) hit() bool   { return strings.Contains(a.how(), ";hit") }

// request makes one. Fields are given as "Name: value"; "Host: x" is the host.
func (s *site) request(replica int, method, path string, fields ...string) *http.Request {
	s.t.Helper()
	s.made.Add(1)
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.servers[replica].URL+path, nil)
	require.NoError(s.t, err)
	r.Host = "site.test"
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	return r
}

func (s *site) do(r *http.Request) answer {
	began := time.Now()
	resp, err := s.client.Do(r)
	if err != nil {
		return answer{err: err, took: time.Since(began)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), resp.ContentLength, err, time.Since(began)}
}

func (s *site) get(path string, fields ...string) answer { return s.at(0, path, fields...) }

func (s *site) at(replica int, path string, fields ...string) answer {
	s.t.Helper()
	return s.do(s.request(replica, "GET", path, fields...))
}

func (s *site) send(method, path string, fields ...string) answer {
	s.t.Helper()
	return s.do(s.request(0, method, path, fields...))
}

// crowd sends n requests at once, to all replicas in turn, and returns a function that waits for the answers.
func (s *site) crowd(n int, path string, fields ...string) func() []answer {
	s.t.Helper()
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range answers {
		r := s.request(i%len(s.servers), "GET", path, fields...)
		wg.Go(func() { answers[i] = s.do(r) })
	}
	return func() []answer { wg.Wait(); return answers }
}

// stored waits until a request is a hit.
func (s *site) stored(path string, fields ...string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.get(path, fields...).hit() }, patience, tick)
}

// ran waits until the handler has begun n times.
func (s *site) ran(n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.runs.Load() >= int64(n) }, patience, tick, "the handler")
}

// settle waits until all requests have reached their server, and gives them the time to go on from there.
func (s *site) settle() {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.arrived.Load() >= s.made.Load() }, patience, tick)
	time.Sleep(150 * time.Millisecond)
}

// stream reads a response as it comes.
type stream struct {
	*http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
}

func (s *site) open(replica int, path string, fields ...string) *stream {
	s.t.Helper()
	r := s.request(replica, "GET", path, fields...)
	ctx, cancel := context.WithCancel(r.Context())
	resp, err := s.client.Do(r.WithContext(ctx))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { cancel(); resp.Body.Close() })
	return &stream{resp, bufio.NewReader(resp.Body), cancel}
}

func (s *stream) line() string {
	line, _ := s.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n")
}

// logs is what the servers log.
type logs struct {
	mu    sync.Mutex
	lines []string
}

func (l *logs) logger() *log.Logger { return log.New(l, "", 0) }

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

// text is a handler that says something with the given fields.
func text(body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { say(w, body, fields...) }
}

func say(w http.ResponseWriter, body string, fields ...string) {
	set(w, fields...)
	_, _ = io.WriteString(w, body)
}

func set(w http.ResponseWriter, fields ...string) {
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		w.Header().Add(name, value)
	}
}

const minute = "Cache-Control: max-age=60"

// gate is a handler that says when it runs, and goes on when told to.
type gate struct {
	running chan struct{}
	open    chan struct{}
}

func newGate(t *testing.T) *gate {
	g := &gate{make(chan struct{}, 10_000), make(chan struct{})}
	t.Cleanup(g.free)
	return g
}

func (g *gate) pass() { g.running <- struct{}{}; <-g.open }

func (g *gate) free() {
	if !g.isOpen() {
		close(g.open)
	}
}

func (g *gate) isOpen() bool {
	select {
	case <-g.open:
		return true
	default:
		return false
	}
}

func (g *gate) wait(t *testing.T) {
	t.Helper()
	select {
	case <-g.running:
	case <-time.After(patience):
		require.Fail(t, "the handler does not run")
	}
}

func bodies(answers []answer) map[string]int {
	m := map[string]int{}
	for _, a := range answers {
		m[fmt.Sprint(a.status, " ", a.body)]++
	}
	return m
}
