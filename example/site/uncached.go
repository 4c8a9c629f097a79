package site

import (
	"fmt"
	"html"
	"net/http"
	"time"
)

// you greets the reader by his cookie: an answer for nobody else, which says so. It never waits for that of another, either.
func you(w http.ResponseWriter, r *http.Request) {
	name := "whoever you are"
	if cookie, err := r.Cookie("name"); err == nil {
		name = cookie.Value
	}
	w.Header().Set("Cache-Control", "private")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<p>Good day, %s\n", html.EscapeString(name))
}

const (
	events = 10
	pause  = 300 * time.Millisecond // between two events
)

// live tells the reader what goes on, as it goes on. He gets each event at once.
func (r *Replica) live(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for range events {
		fmt.Fprintf(w, "data: %d under way at replica %s\n\n", r.Underway(), r.Name)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-q.Context().Done(): // the reader has left
			return
		}
	}
}

// fail answers well once, and for a second; from then on what is behind it is in trouble. Its first answer stands in for
// the errors for a minute.
func (o *Origin) fail(w http.ResponseWriter, _ *http.Request) {
	if o.failing.Swap(true) {
		http.Error(w, "out of order", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Cache-Control", "max-age=1, stale-if-error=60")
	fmt.Fprintln(w, "in order")
}
