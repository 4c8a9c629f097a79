package demo

import (
	"context"
	"fmt"
	"net/http"

	"github.com/bellwether-cache/bellwether/example/site"
)

// stampede lets a crowd loose on a page that nobody has yet, without and with protection.
func (s *Stage) stampede(ctx context.Context) (*section, error) {
	show := &section{
		title: fmt.Sprintf("Cold stampede: %d requests at once for %s, which takes %s to render", s.crowd(), page, short(s.once)),
		head:  []string{"", "renderings", "answers", "p50", "p99", "max"},
		see:   "Without protection everyone who misses renders. With it one renders, and the others get that page as soon as it is there.",
	}
	for _, arm := range []struct{ name, path string }{
		{"GET, render, SET", site.PathPlain},
		{"Bellwether", site.PathPages},
	} {
		before := s.Fleet.Origin.Count(page)
		report, err := s.burst(ctx, "cold stampede, "+arm.name, arm.path+page)
		if err != nil {
			return nil, err
		}
		renderings := s.Fleet.Origin.Count(page) - before
		show.row(arm.name, renderings, report.Answers(), report.Quantile(0.5), report.Quantile(0.99), report.Quantile(1))
		show.expect(report.Statuses[http.StatusOK] == s.crowd(), "%s: answers by status %v", arm.name, report.Statuses)
		if arm.path == site.PathPages {
			show.expect(renderings == 1, "%d renderings instead of 1", renderings)
			show.expect(len(report.Renderings) == 1, "%d different pages instead of 1", len(report.Renderings))
		}
	}
	return show, nil
}

// unknown lets the crowd ask, twice, for what isn't there.
func (s *Stage) unknown(ctx context.Context) (*section, error) {
	show := &section{
		title: fmt.Sprintf("Asks for what isn't there: %d requests at once for %s, twice", s.crowd(), pageUnknown),
		head:  []string{"", "look-ups", "answers", "404", "p50", "max"},
		see:   "That there is no such package is an answer too, and remembered for a while.",
	}
	for _, name := range []string{"first", "again"} {
		before := s.Fleet.Origin.Count(pageUnknown)
		report, err := s.burst(ctx, "unknown package, "+name, site.PathPages+pageUnknown)
		if err != nil {
			return nil, err
		}
		missing := report.Statuses[http.StatusNotFound]
		show.row(name, s.Fleet.Origin.Count(pageUnknown)-before, report.Answers(), missing, report.Quantile(0.5), report.Quantile(1))
		show.expect(missing == s.crowd(), "%s: answers by status %v", name, report.Statuses)
	}
	lookups := s.Fleet.Origin.Count(pageUnknown)
	show.expect(lookups == 1, "%d look-ups instead of 1", lookups)
	return show, nil
}
