package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// row is a situation, and what those get who are in it: the leader for whom the handler runs, a waiter of the same
// process and one of another who came while it ran, and a request after that.
type row struct {
	situation string
	before    string // what was stored, with which Cache-Control; it has run out
	answers   func(w http.ResponseWriter, id string)
	leaves    bool // the leader does, while the handler runs

	leader, waiter, elsewhere, later string
}

func with(fields ...string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) { say(w, id, fields...) }
}

func code(status int, fields ...string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) { set(w, fields...); w.WriteHeader(status); say(w, id) }
}

const grace = "max-age=1, stale-if-error=60"

var table = []row{
	{"a response with a lifetime", "", with(minute), false,
		"its own, as it is written", "the leader's", "the leader's", "the leader's"},
	{"one with a lifetime, that varies: a request for another variant", "", with(minute, "Vary: X-Id"), false,
		"its own, as it is written", "its own", "its own", "its own"},
	{"no lifetime", "", with(), false,
		"its own, as it is written", "its own", "its own", "its own"},
	{"private, no-store, Set-Cookie, Vary: *", "", with(minute, "Set-Cookie: a=b"), false,
		"its own, as it is written", "its own", "its own", "its own"},
	{"no-cache, with an ETag", "", with("Cache-Control: no-cache", tag), false,
		"its own, as it is written", "its own", "its own", "its own"},
	{"a stream: flushed without a lifetime, events, over MaxBody", "", func(w http.ResponseWriter, id string) {
		say(w, id, "Content-Type: text/event-stream")
		_ = http.NewResponseController(w).Flush()
	}, false,
		"its own, as it is written", "its own", "its own", "its own"},
	{"404 with a lifetime", "", code(404, minute), false,
		"404, its own, as it is written", "404, the leader's", "404, the leader's", "404, the leader's"},
	{"503, nothing stored", "", code(503), false,
		"503, its own", "503, the leader's", "503", "503, its own"},
	{"503 that is private, nothing stored", "", code(503, "Cache-Control: private"), false,
		"503, its own", "503, its own", "503, its own", "503, its own"},
	{"503, a response within stale-if-error", grace, code(503), false,
		"the stale one", "the stale one", "the stale one", "the stale one"},
	{"503, a response that must be revalidated", grace + ", must-revalidate", code(503), false,
		"503, its own", "503, the leader's", "503", "503, its own"},
	{"a panic, nothing stored", "", func(http.ResponseWriter, string) { panic("boom") }, false,
		"broken off", "500", "500", "broken off"},
	{"http.ErrAbortHandler, nothing stored", "", func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }, false,
		"broken off", "broken off", "broken off", "broken off"},
	{"either, a response within stale-if-error", grace, func(http.ResponseWriter, string) { panic("boom") }, false,
		"the stale one", "the stale one", "the stale one", "the stale one"},
	{"fewer bytes than Content-Length says", "", func(w http.ResponseWriter, id string) {
		if id == "leader" {
			set(w, "Content-Length: 100")
		}
		say(w, id, minute)
	}, false,
		"broken off", "its own", "its own", "its own"},
	{"the handler goes on past Options.Limit", "", func(w http.ResponseWriter, id string) {
		if id != "later" {
			time.Sleep(1500 * time.Millisecond)
		}
		say(w, id, minute)
	}, false,
		"504", "504", "504", "its own"},
	{"the leader's client leaves", "", with(minute), true,
		"gone", "the leader's", "the leader's", "the leader's"},
	{"a response that is stale-while-revalidate", "max-age=1, stale-while-revalidate=60", with(minute), false,
		"the stale one, at once", "the stale one, at once", "the stale one, at once", "the leader's"},
	{"a stale response whose handler says 304", "max-age=1", code(304, minute, tag), false,
		"the stale one, now fresh", "the stale one, now fresh", "the stale one, now fresh", "the stale one, now fresh"},
}

func TestWhatLeaderWaiterAndLaterRequestGet(t *testing.T) {
	for _, r := range table {
		t.Run(r.situation, func(t *testing.T) {
			t.Parallel()
			r.run(t)
		})
	}
}

func (r row) run(t *testing.T) {
	g := newGate(t)
	s := serve(t, func(w http.ResponseWriter, q *http.Request) {
		id := q.Header.Get("X-Id")
		if id == "before" {
			say(w, id, "Cache-Control: "+r.before, tag)
			return
		}
		if id == "leader" {
			g.pass()
		}
		r.answers(w, id)
	}, replicas(2), limit(time.Second))
	if r.before != "" {
		s.get("/a", "X-Id: before")
		time.Sleep(1100 * time.Millisecond)
	}
	behind := strings.Contains(r.leader, "at once")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	leader := s.ask(ctx, r, 0, "leader")
	g.wait(t)
	if behind {
		assert.Equal(t, r.leader, <-leader, "leader")
	}
	waiter, elsewhere := s.ask(t.Context(), r, 0, "waiter"), s.ask(t.Context(), r, 1, "elsewhere")
	s.settle()
	if behind {
		assert.Equal(t, r.waiter, <-waiter, "waiter")
		assert.Equal(t, r.elsewhere, <-elsewhere, "waiter elsewhere")
	}
	if r.leaves {
		leave()
		s.settle()
	}
	g.free()
	if !behind {
		assert.Equal(t, r.leader, <-leader, "leader")
		assert.Equal(t, r.waiter, <-waiter, "waiter")
		assert.Equal(t, r.elsewhere, <-elsewhere, "waiter elsewhere")
	}
	s.settle()
	assert.Equal(t, r.later, <-s.ask(t.Context(), r, 0, "later"), "later")
}

// ask sends a request and says what it got.
func (s *site) ask(ctx context.Context, r row, replica int, id string) <-chan string {
	got := make(chan string, 1)
	q := s.request(replica, "GET", "/a", "X-Id: "+id).WithContext(ctx)
	go func() { got <- r.tell(id, s.do(q)) }()
	return got
}

func (r row) tell(id string, a answer) string {
	whose := map[string]string{id: "its own", "leader": "the leader's", "before": "the stale one"}[a.body]
	if id == "leader" && a.body == id {
		whose = "its own"
		if !strings.HasPrefix(r.leader, "503") {
			whose += ", as it is written"
		}
	}
	switch {
	case errors.Is(a.err, context.Canceled):
		return "gone"
	case a.err != nil:
		return "broken off"
	case whose == "" && a.status == 200:
		return "another's"
	case whose == "":
		return fmt.Sprint(a.status)
	case a.body == "before" && !strings.Contains(a.how(), "ttl=-") && r.later == "the stale one, now fresh":
		return whose + ", now fresh"
	case a.body == "before" && strings.Contains(r.leader, "at once"):
		return whose + ", at once"
	case a.status != 200:
		return fmt.Sprint(a.status, ", ", whose)
	}
	return whose
}
