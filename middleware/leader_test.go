package middleware_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALeaderThatLeavesTakesNothingWithIt(t *testing.T) {
	g := newGate(t)
	over := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, "first\n", minute)
		g.pass()
		if r.Context().Err() == nil {
			say(w, "last\n")
		}
	}, replicas(2), around(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Leader") != "" {
				defer close(over)
			}
			next.ServeHTTP(w, r)
		})
	}))
	leader := s.open(0, "/a", "X-Leader: 1")
	assert.Equal(t, "first", leader.line())
	waiters := s.crowd(10, "/a")
	s.settle()
	leader.cancel()
	select {
	case <-over:
	case <-time.After(patience):
		t.Fatal("its exchange goes on though its client has left")
	}
	g.free()
	assert.Equal(t, map[string]int{"200 first\nlast\n": 10}, bodies(waiters()))
	assert.True(t, s.get("/a").hit())
	assert.EqualValues(t, 1, s.runs.Load())
}

func TestWhenAllHaveLeftTheHandlerIsToldAndNothingIsStored(t *testing.T) {
	told := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		say(w, "first\n", minute)
		if r.Header.Get("X-Wait") != "" {
			<-r.Context().Done()
			close(told)
		}
	})
	leader := s.open(0, "/a", "X-Wait: 1")
	assert.Equal(t, "first", leader.line())
	leader.cancel()
	select {
	case <-told:
	case <-time.After(patience):
		t.Fatal("the handler's context goes on")
	}
	again := s.get("/a")
	assert.Equal(t, "first\n", again.body)
	assert.EqualValues(t, 2, s.runs.Load(), "what was there of it is not taken for the whole")
}

// An answer that is only there because the context ended is none.
func TestAnEmptyAnswerOfACancelledHandlerIsNotStored(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		set(w, minute)
		if r.Header.Get("X-Wait") != "" {
			<-r.Context().Done()
			g.running <- struct{}{}
			return
		}
		say(w, "whole")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	require.Error(t, s.do(s.request(0, "GET", "/a", "X-Wait: 1").WithContext(ctx)).err)
	g.wait(t)
	assert.Equal(t, "whole", s.get("/a").body)
}

func TestASlowLeaderHoldsNobodyUp(t *testing.T) {
	body := strings.Repeat("x", 900_000)
	s := serve(t, text(body, minute))
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.servers[0].URL, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
	_, err = io.WriteString(conn, "GET /a HTTP/1.1\r\nHost: site.test\r\n\r\n")
	require.NoError(t, err) // and reads nothing
	s.ran(1)
	for _, a := range s.crowd(5, "/a")() {
		assert.Equal(t, body, a.body)
		assert.Less(t, a.took, 5*time.Second)
	}
	assert.EqualValues(t, 1, s.runs.Load())
}

func TestATornResponseReachesItsLeaderAsSuchAndNobodyElse(t *testing.T) {
	for name, torn := range map[string]func(w http.ResponseWriter){
		"fewer bytes than said": func(w http.ResponseWriter) { say(w, "half", minute, "Content-Length: 8") },
		"a panic":               func(w http.ResponseWriter) { say(w, "half", minute); panic("boom") },
		"an abort":              func(w http.ResponseWriter) { say(w, "half", minute); panic(http.ErrAbortHandler) },
		"an abort, at last": func(w http.ResponseWriter) {
			say(w, "half", minute)
			time.Sleep(50 * time.Millisecond)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Whole") != "" {
					say(w, "whole", minute)
					return
				}
				g.pass()
				torn(w)
			})
			leader := s.crowd(1, "/a")
			g.wait(t)
			waiters := s.crowd(5, "/a", "X-Whole: 1")
			s.settle()
			g.free()
			assert.Error(t, leader()[0].err)
			for _, a := range waiters() {
				switch a.status {
				case 500:
					assert.Equal(t, "a panic", name)
				default:
					assert.Equal(t, "whole", a.body)
				}
			}
			assert.Equal(t, "whole", s.get("/a", "X-Whole: 1").body, "nothing of it is stored")
		})
	}
}

func TestAPanicIsTheLeadersOwn(t *testing.T) {
	boom := errors.New("boom")
	for _, value := range []any{"boom", boom, http.ErrAbortHandler} {
		got := make(chan any, 10)
		g := newGate(t)
		s := serve(t, func(http.ResponseWriter, *http.Request) { g.pass(); panic(value) }, around(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					if p := recover(); p != nil {
						got <- p
						panic(http.ErrAbortHandler)
					}
				}()
				next.ServeHTTP(w, r)
			})
		}))
		leader := s.crowd(1, "/a")
		g.wait(t)
		waiters := s.crowd(3, "/a")
		s.settle()
		g.free()
		require.Error(t, leader()[0].err)
		for _, a := range waiters() {
			if value == http.ErrAbortHandler {
				require.Error(t, a.err, "each has run its own")
			} else {
				assert.Equal(t, 500, a.status)
			}
		}
		assert.Equal(t, value, <-got, "the very value")
	}
}

func TestAWaiterOfAnotherReplicaIsToldOfAPanic(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(http.ResponseWriter, *http.Request) { g.pass(); panic("boom") }, replicas(2))
	leader := s.crowd(1, "/a")
	g.wait(t)
	other := make(chan answer, 1)
	r := s.request(1, "GET", "/a")
	go func() { other <- s.do(r) }()
	s.settle()
	g.free()
	require.Error(t, leader()[0].err)
	assert.Equal(t, 500, (<-other).status)
	assert.EqualValues(t, 1, s.runs.Load())
	assert.Equal(t, 1, strings.Count(s.logs.String(), "panic serving"), "net/http logs it once, as for any handler")
}

func TestAHandlerThatHangsIsAnsweredForAfterItsLimit(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Hang") != "" {
			g.pass()
		}
		say(w, "well", minute)
	}, limit(2*time.Second))
	hung := s.crowd(5, "/a", "X-Hang: 1")
	for _, a := range hung() {
		require.NoError(t, a.err)
		assert.Equal(t, http.StatusGatewayTimeout, a.status)
	}
	require.Eventually(t, func() bool { return s.get("/a").body == "well" }, 5*time.Second, 10*time.Millisecond, "though it still hangs")
	assert.EqualValues(t, 2, s.runs.Load())
	g.free()
}
