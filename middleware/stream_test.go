package middleware_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/middleware"
	"github.com/bellwether-cache/bellwether/stale"
)

// Each response here is for its client alone: the first part of it arrives at once, and nobody waits for its end.
func TestAStreamReachesItsClientAsItIsWrittenAndHoldsNobodyUp(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"events": func(w http.ResponseWriter) {
			say(w, "first\n", minute, "Content-Type: text/event-stream")
			w.(http.Flusher).Flush()
		},
		"a flush":               func(w http.ResponseWriter) { say(w, "first\n"); w.(http.Flusher).Flush() },
		"a flush by controller": func(w http.ResponseWriter) { say(w, "first\n"); _ = http.NewResponseController(w).Flush() },
		"over the limit":        func(w http.ResponseWriter) { say(w, "first\n"+strings.Repeat("x", 20_000)+"\n", minute) },
		"said to be over": func(w http.ResponseWriter) {
			say(w, "first\n", minute, "Content-Length: 6000")
			_ = http.NewResponseController(w).Flush()
		},
		"private, and flushed": func(w http.ResponseWriter) {
			say(w, "first\n", "Cache-Control: private")
			_ = http.NewResponseController(w).Flush()
		},
		"with announced trailer": func(w http.ResponseWriter) {
			say(w, "first\n", minute, "Trailer: X-End")
			_ = http.NewResponseController(w).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) { begin(w); g.pass(); say(w, "last\n") },
				options(middleware.Options{MaxBody: 1000, Policy: stale.Policy{Fresh: time.Minute}}))
			var streams []*stream
			for range 4 {
				streams = append(streams, s.open(0, "/a"))
			}
			for _, c := range streams {
				assert.Equal(t, "first", c.line())
			}
			assert.EqualValues(t, 4, s.runs.Load())
			g.free()
			for _, c := range streams {
				rest, err := io.ReadAll(c.lines)
				if name != "said to be over" {
					require.NoError(t, err)
				}
				assert.True(t, strings.HasSuffix(string(rest), "last\n"))
			}
			assert.False(t, s.get("/a").hit())
		})
	}
}

func TestThoseWhoWaitAreFreedByTheHeaderOfAPrivateResponseNotByItsEnd(t *testing.T) {
	header, end := newGate(t), newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		leads := r.Header.Get("X-Leader") != ""
		if leads {
			header.pass()
		}
		say(w, "mine", "Cache-Control: private")
		if leads {
			end.pass()
		}
	}, replicas(2))
	leader := s.crowd(1, "/a", "X-Leader: 1")
	header.wait(t)
	waiters := s.crowd(10, "/a")
	s.settle()
	header.free()
	end.wait(t)
	for _, a := range waiters() {
		assert.Equal(t, "mine", a.body)
		assert.Less(t, a.took, patience)
	}
	end.free()
	assert.Equal(t, "mine", leader()[0].body)
	assert.EqualValues(t, 11, s.runs.Load())
}

// A proxy flushes whatever has no length. With a lifetime it is stored all the same.
func TestAFlushedResponseWithALifetimeIsStored(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, "first\n", minute)
		w.(http.Flusher).Flush()
		g.pass()
		say(w, "last\n")
	})
	leader := s.open(0, "/a")
	assert.Equal(t, "first", leader.line())
	g.free()
	assert.Equal(t, "last", leader.line())
	s.stored("/a")
	assert.Equal(t, "first\nlast\n", s.get("/a").body)
	assert.EqualValues(t, 1, s.runs.Load())
}

func TestALargeStreamTakesNoMemory(t *testing.T) {
	const size, part = 256 << 20, 32 << 10
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, minute)
		b := make([]byte, part)
		for range size / part {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, most := heap(), uint64(0)
	c := s.open(0, "/a")
	got := int64(0)
	b := make([]byte, 1<<20)
	for i := 0; ; i++ {
		n, err := c.Body.Read(b)
		got += int64(n)
		if i%200 == 0 {
			most = max(most, heap())
		}
		if err != nil {
			require.Equal(t, io.EOF, err)
			break
		}
	}
	assert.EqualValues(t, size, got)
	assert.Less(t, int64(most)-int64(before), int64(16<<20), "the heap has grown")
}

func TestAClientThatLeavesItsStreamEndsTheHandler(t *testing.T) {
	ended := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, "first\n", "Content-Type: text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
	})
	c := s.open(0, "/a")
	assert.Equal(t, "first", c.line())
	c.cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the handler goes on")
	}
}

func TestAConnectionCanBeTakenOver(t *testing.T) {
	for _, upgrade := range []bool{true, false} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if !assert.NoError(t, err) {
				return
			}
			defer conn.Close()
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
			assert.NoError(t, rw.Flush())
			line, _ := rw.ReadString('\n')
			fmt.Fprint(rw, "you said ", line)
			assert.NoError(t, rw.Flush())
		})
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.servers[0].URL, "http://"))
		require.NoError(t, err)
		fields := ""
		if upgrade {
			fields = "Connection: Upgrade\r\nUpgrade: x\r\n"
		}
		fmt.Fprintf(conn, "GET /a HTTP/1.1\r\nHost: site.test\r\n%s\r\n", fields)
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		assert.Equal(t, 101, resp.StatusCode)
		fmt.Fprint(conn, "hello\n")
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "you said hello\n", line)
		conn.Close()
	}
}

func TestAResponseControllerWorksInAFill(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		assert.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Minute)))
		assert.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		assert.NoError(t, c.EnableFullDuplex())
		say(w, "hello", minute)
	})
	assert.Equal(t, "hello", s.get("/a").body)
	assert.True(t, s.get("/a").hit(), "and keeps nothing from being stored")
}

func TestWhoeverUnwrapsTheWriterWritesToTheClient(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, minute)
		say(w.(interface{ Unwrap() http.ResponseWriter }).Unwrap(), "hello")
	})
	for range 2 {
		a := s.get("/a")
		assert.Equal(t, "hello", a.body)
		assert.Equal(t, "max-age=60", a.header.Get("Cache-Control"))
	}
	assert.EqualValues(t, 2, s.runs.Load())
}

func TestInformationalResponsesReachTheLeaderAtOnce(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, "Link: </style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		g.pass()
		set(w, minute)
		w.WriteHeader(http.StatusNotFound)
		say(w, "nothing here")
	}, around(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { set(w, "X-Outer: 1"); next.ServeHTTP(w, r) })
	}))
	early := make(chan textproto.MIMEHeader, 1)
	r := s.request(0, "GET", "/a")
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error { assert.Equal(t, 103, code); early <- h; return nil },
	}))
	got := make(chan answer, 1)
	go func() { got <- s.do(r) }()
	select {
	case h := <-early:
		assert.Equal(t, "</style.css>; rel=preload", h.Get("Link"))
	case <-time.After(patience):
		t.Fatal("no hint")
	}
	g.free()
	a := <-got
	assert.Equal(t, 404, a.status, "the hint is not taken for the answer")
	assert.Empty(t, a.header.Get("Link"))
	assert.Equal(t, "1", a.header.Get("X-Outer"))
	again := s.get("/a")
	assert.Equal(t, 404, again.status)
	assert.True(t, again.hit())
}

func TestTrailersReachTheLeader(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/announced" {
			set(w, "Trailer: X-End")
		}
		say(w, "hello", minute)
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-End", "announced")
		w.Header().Set(http.TrailerPrefix+"X-More", "unannounced")
	})
	for path, want := range map[string]http.Header{
		"/announced": {"X-End": {"announced"}, "X-More": {"unannounced"}},
		"/not":       {"X-More": {"unannounced"}},
	} {
		c := s.open(0, path)
		_, err := io.ReadAll(c.Body)
		require.NoError(t, err)
		assert.Equal(t, want, c.Trailer, path)
	}
	again := s.open(0, "/not")
	_, err := io.ReadAll(again.Body)
	require.NoError(t, err)
	assert.Empty(t, again.Trailer)
	assert.Empty(t, again.Header.Get("X-More"))
	assert.EqualValues(t, 2, s.runs.Load())
}
