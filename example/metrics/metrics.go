package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
)

// metrics are the hooks of a service as Prometheus metrics. A label's values are those listed here and no others: neither keys nor
// texts of errors nor addresses. All series are there from the start, at 0, or an alert would miss the first event.
type metrics struct {
	registry     *prometheus.Registry
	calls        *prometheus.HistogramVec // outcome
	computations *prometheus.HistogramVec // result
	leases       *prometheus.CounterVec   // of, event
	storeFailed  *prometheus.CounterVec   // step, why
	breaker      *prometheus.CounterVec   // breaker, state
	push         prometheus.Gauge
	damaged      prometheus.Counter
	unencodable  prometheus.Counter
	overtaken    prometheus.Counter
	work         *prometheus.HistogramVec // result
	left         prometheus.Histogram
	responses    *prometheus.CounterVec // how
	unpurged     prometheus.Counter
}

var (
	outcomes = []string{"hit", "stale", "computed", "collapsed", "fell-back"}
	failures = []string{"not-found", "passed", "left", "timeout", "panic", "error"}
	events   = []string{"acquired", "held", "failed", "extended", "not-extended", "lost", "released", "not-released"}
	owners   = []string{"cache", "jobs"}
	steps    = []string{"get", "begin", "set", "fail"}
	reasons  = []string{"unreachable", "refused", "too-big", "other"}
	breakers = []string{"link", "writes"}
	states   = []string{"open", "half-open", "closed"}
	ways     = []string{"hit", "stale", "collapsed", "stored", "not-stored", "bypass", "method", "none"}

	seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
)

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "bellwether_" + name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bellwether_" + name, Help: help}, labels)
	}
	histograms := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "bellwether_" + name, Help: help, Buckets: seconds}, labels)
	}
	m := &metrics{
		registry:     prometheus.NewRegistry(),
		calls:        histograms("call_duration_seconds", "Lookup and its like, by how they were answered.", "outcome"),
		computations: histograms("computation_duration_seconds", "Computations of this process, by how they ended.", "result"),
		leases:       counters("lease_events_total", "What happened to leases.", "of", "event"),
		storeFailed:  counters("store_failures_total", "Steps on the store that did not work; their calls went on.", "step", "why"),
		breaker:      counters("breaker_changes_total", "Changes of the breakers in front of Redis.", "breaker", "state"),
		push:         prometheus.NewGauge(prometheus.GaugeOpts{Name: "bellwether_push_connected", Help: "1 while events of other processes are heard."}),
		damaged:      counter("damaged_entries_total", "Entries that could not be read and counted as missing."),
		unencodable:  counter("unencodable_values_total", "Values that could not be stored."),
		overtaken:    counter("overtaken_results_total", "Results refused since a later write or deletion stands, or is no longer known not to."),
		work:         histograms("work_duration_seconds", "Runs of a Guard, by how they ended.", "result"),
		left: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "bellwether_work_lease_left_ratio",
			Help: "Part of a Guard's lease that was left when it was released; 0: lost.", Buckets: []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}}),
		responses: counters("http_responses_total", "Responses by what their Cache-Status says.", "how"),
		unpurged:  counter("unpurged_total", "Changes that could not invalidate what is stored for their URI at once."),
	}
	each(ofOne(outcomes, failures), func(l ...string) { m.calls.WithLabelValues(l...) })
	each(ofOne([]string{"ok"}, failures), func(l ...string) { m.computations.WithLabelValues(l...); m.work.WithLabelValues(l...) })
	each(pairs(owners, events), func(l ...string) { m.leases.WithLabelValues(l...) })
	each(pairs(steps, reasons), func(l ...string) { m.storeFailed.WithLabelValues(l...) })
	each(pairs(breakers, states), func(l ...string) { m.breaker.WithLabelValues(l...) })
	each(ofOne(ways), func(l ...string) { m.responses.WithLabelValues(l...) })
	m.registry.MustRegister(m.calls, m.computations, m.leases, m.storeFailed, m.breaker, m.push, m.damaged, m.unencodable, m.overtaken,
		m.work, m.left, m.responses, m.unpurged)
	return m
}

func each(all [][]string, f func(labels ...string)) {
	for _, labels := range all {
		f(labels...)
	}
}

func ofOne(lists ...[]string) (all [][]string) {
	for _, list := range lists {
		for _, l := range list {
			all = append(all, []string{l})
		}
	}
	return all
}

func pairs(as, bs []string) (all [][]string) {
	for _, a := range as {
		for _, b := range bs {
			all = append(all, []string{a, b})
		}
	}
	return all
}

// trace is for cache.Options.Trace.
func (m *metrics) trace() cache.Trace {
	return cache.Trace{
		Lease: m.leaseTrace("cache"),
		Done: func(o cache.Outcome, took time.Duration, err error) {
			outcome := o.String()
			if err != nil {
				outcome = failure(err)
			}
			m.calls.WithLabelValues(outcome).Observe(took.Seconds())
		},
		Computed: func(took time.Duration, err error) {
			m.computations.WithLabelValues(result(err)).Observe(took.Seconds())
		},
		StoreFailed: func(step string, err error) {
			m.storeFailed.WithLabelValues(step, reason(err)).Inc()
		},
		Damaged:     func(error) { m.damaged.Inc() },
		Unencodable: func(error) { m.unencodable.Inc() },
		Overtaken:   m.overtaken.Inc,
		Push: func(on bool, _ error) {
			m.push.Set(0)
			if on {
				m.push.Set(1)
			}
		},
	}
}

// leaseTrace is for recompute.GuardOptions.Trace, and a part of the cache's.
func (m *metrics) leaseTrace(of string) recompute.Trace {
	count := func(event string) { m.leases.WithLabelValues(of, event).Inc() }
	either := func(event string) func(error) {
		return func(err error) {
			if err != nil {
				event := "not-" + event
				count(event)
				return
			}
			count(event)
		}
	}
	return recompute.Trace{
		Acquired: func(time.Duration) { count("acquired") },
		Held:     func() { count("held") },
		Failed:   func(error) { count("failed") },
		Extended: either("extended"),
		Lost:     func() { count("lost") },
		Released: either("released"),
		Worked:   func(took time.Duration, err error) { m.work.WithLabelValues(result(err)).Observe(took.Seconds()) },
		Left:     func(left, ttl time.Duration) { m.left.Observe(left.Seconds() / ttl.Seconds()) },
	}
}

// broke is for redisstore.Options.Breaker.
func (m *metrics) broke(change string, _ error) {
	breaker, state, _ := strings.Cut(change, " ")
	m.breaker.WithLabelValues(breaker, state).Inc()
}

// watched is a cache.
type watched interface {
	Oldest() time.Duration
	Undeleted() int
}

// watch exports what is asked of the caches of a process when it is scraped. It is called once, with all of them.
func (m *metrics) watch(caches ...watched) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bellwether_oldest_computation_seconds",
			Help: "How long the oldest computation, or wait for one, has been under way; 0: none is."},
			func() float64 {
				oldest := time.Duration(0)
				for _, c := range caches {
					oldest = max(oldest, c.Oldest())
				}
				return oldest.Seconds()
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "bellwether_undeleted_keys",
			Help: "Keys that wait to be deleted in the store, since that failed."},
			func() float64 {
				sum := 0
				for _, c := range caches {
					sum += c.Undeleted()
				}
				return float64(sum)
			}),
	)
}

// failure is an error as a label.
func failure(err error) string {
	panicked := (*recompute.PanicError)(nil)
	switch {
	case errors.As(err, &panicked):
		return "panic"
	case errors.Is(err, cache.ErrNotFound):
		return "not-found"
	case errors.Is(err, cache.ErrPass):
		return "passed"
	case errors.Is(err, cache.ErrBusy), errors.Is(err, cache.ErrLimit), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled), errors.Is(err, recompute.ErrAbandoned), errors.Is(err, recompute.ErrClosed), errors.Is(err, recompute.ErrLost):
		return "left"
	}
	return "error"
}

func result(err error) string {
	if err == nil {
		return "ok"
	}
	return failure(err)
}

func reason(err error) string {
	switch {
	case errors.Is(err, cache.ErrUnreachable):
		return "unreachable"
	case errors.Is(err, cache.ErrRefused):
		return "refused"
	case errors.Is(err, cache.ErrTooBig):
		return "too-big"
	}
	return "other"
}

// counted counts what the middleware inside of it says in Cache-Status.
func (m *metrics) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { m.responses.WithLabelValues(way(w.Header()["Cache-Status"])).Inc() }()
		next.ServeHTTP(w, r)
	})
}

// way reads the member of Cache-Status that was added last (RFC 9211).
func way(status []string) string {
	if len(status) == 0 {
		return "none"
	}
	says := func(parameter string) bool { return strings.Contains(status[len(status)-1]+";", ";"+parameter) }
	switch {
	case says("hit;ttl=-"):
		return "stale"
	case says("hit;"):
		return "hit"
	case says("collapsed;"):
		return "collapsed"
	case says("fwd=bypass;"):
		return "bypass"
	case says("fwd=method;"):
		return "method"
	case says("stored;"):
		return "stored"
	}
	return "not-stored"
}
