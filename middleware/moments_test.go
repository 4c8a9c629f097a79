package middleware_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// moments are how far a handler gets before something happens.
var moments = map[string]func(w http.ResponseWriter){
	"at once":          func(http.ResponseWriter) {},
	"after a hint":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) },
	"after the header": func(w http.ResponseWriter) { set(w, minute, "Content-Length: 5"); w.WriteHeader(http.StatusOK) },
	"after a part":     func(w http.ResponseWriter) { say(w, "half", minute) },
	"while it is sent": func(w http.ResponseWriter) { say(w, "half", minute); time.Sleep(50 * time.Millisecond) },
	"after a flush":    func(w http.ResponseWriter) { say(w, "half", minute); _ = http.NewResponseController(w).Flush() },
	"in what is private": func(w http.ResponseWriter) {
		say(w, "half", "Cache-Control: private", "Content-Length: 9")
		_ = http.NewResponseController(w).Flush()
	},
	"in an error": func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway); say(w, "half") },
}

var ends = map[string]func(){
	"panic": func() { panic("boom") }, "abort": func() { panic(http.ErrAbortHandler) }, "Goexit": runtime.Goexit,
}

func TestWheneverAHandlerEndsBadlyItsClientSeesItAndNobodyGetsAPart(t *testing.T) {
	for at, begin := range moments {
		for name, end := range ends {
			t.Run(name+" "+at, func(t *testing.T) {
				t.Parallel()
				g := newGate(t)
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Bad") == "" {
						say(w, "whole", minute)
						return
					}
					begin(w)
					g.pass()
					end()
				}, replicas(2))
				leader := s.crowd(1, "/a", "X-Bad: 1")
				g.wait(t)
				waiters := s.crowd(6, "/a")
				s.settle()
				g.free()
				require.Error(t, leader()[0].err)
				for _, a := range waiters() {
					require.NoError(t, a.err)
					assert.Contains(t, []string{"200 whole", "500 Internal Server Error\n"}, fmt.Sprint(a.status, " ", a.body))
				}
				for replica := range 2 {
					assert.Equal(t, "whole", s.at(replica, "/a").body)
				}
			})
		}
	}
}

// Whoever leads may leave whenever he likes: those who wait get the whole.
func TestWheneverTheLeaderLeavesTheOthersGetTheWhole(t *testing.T) {
	for at, begin := range moments {
		if at == "in an error" || at == "after the header" {
			continue
		}
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			g := newGate(t)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Leader") == "" {
					say(w, "half whole", minute)
					return
				}
				begin(w)
				g.pass()
				if at == "at once" || at == "after a hint" {
					say(w, "half", minute)
				}
				_, _ = io.WriteString(w, " whole")
			}, replicas(2))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			left := make(chan error, 1)
			r := s.request(0, "GET", "/a", "X-Leader: 1").WithContext(ctx)
			go func() { left <- s.do(r).err }()
			g.wait(t)
			waiters := s.crowd(6, "/a")
			s.settle()
			leave()
			require.Error(t, <-left)
			g.free()
			assert.Equal(t, map[string]int{"200 half whole": 6}, bodies(waiters()))
			assert.Equal(t, "half whole", s.get("/a").body)
		})
	}
}

// A handler may leave goroutines behind that go on with what it had. What they write is nobody's.
func TestWhatIsWrittenAfterTheHandlerHasReturnedIsNotStored(t *testing.T) {
	for _, field := range []string{minute, "Cache-Control: private"} {
		late := make(chan func(), 10)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, "whole", field)
			late <- func() {
				_, _ = io.WriteString(w, " and more")
				w.WriteHeader(http.StatusTeapot)
				r.URL.Path = "/b"
				r.Header.Set("X-Late", "1")
			}
		})
		assert.Equal(t, "whole", s.get("/a").body)
		assert.Equal(t, "whole", s.get("/a").body)
		s.settle()
		if field == minute { // through net/http it would be a race of its own
			(<-late)()
		}
		assert.Equal(t, "whole", s.get("/a").body)
	}
}
