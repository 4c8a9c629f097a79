package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/example/site"
)

const (
	steadyClients = 4 // per replica, at most
	steadyPause   = 10 * time.Millisecond
)

// expiry keeps asking for a page that runs out all the time.
func (s *Stage) expiry(ctx context.Context) (*section, error) {
	show := &section{
		title: fmt.Sprintf("Runs out under load: %s is fresh for %s and takes %s to render", page, short(site.Short.Fresh), short(s.once)),
		head:  []string{"lifetimes", "renderings", "answers", "hit", "stale", "waited", "p50", "p99", "max"},
		see: "At most one renders per lifetime, behind the answers. Meanwhile everyone gets the page of before; " +
			"the slowest shared a CPU with a rendering.",
	}
	began := time.Now()
	if first := s.client.Get(ctx, s.Fleet.URLs(site.PathHot + page)[0]); first.Err != nil {
		return nil, first.Err
	}
	before := s.Fleet.Origin.Count(page)
	clients := min(s.Clients, steadyClients)
	step, done := s.Progress.Start("runs out under load", clients*len(s.Fleet.Replicas)*int(s.Steady/steadyPause))
	report := s.client.Steady(ctx, s.Fleet.URLs(site.PathHot+page), clients, steadyPause, s.Steady, step)
	done()
	if report.Err != nil {
		return nil, report.Err
	}
	lifetimes := int(time.Since(began) / site.Short.Fresh)
	renderings := s.Fleet.Origin.Count(page) - before
	hits, stale := report.Outcomes[cache.Hit.String()], report.Outcomes[cache.Stale.String()]
	waited := report.Answers() - hits - stale
	show.row(lifetimes, renderings, report.Answers(), hits, share(stale, report.Answers()), waited,
		report.Quantile(0.5), report.Quantile(0.99), report.Quantile(1))
	show.expect(report.Statuses[http.StatusOK] == report.Answers(), "answers by status %v", report.Statuses)
	show.expect(renderings <= lifetimes, "%d renderings in %d lifetimes", renderings, lifetimes)
	show.expect(renderings > 0, "the page never ran out")
	show.expect(waited == 0, "%d requests waited for a rendering: %v", waited, report.Outcomes)
	return show, nil
}

func share(part, whole int) string {
	return fmt.Sprintf("%d (%.0f %%)", part, 100*float64(part)/float64(max(whole, 1)))
}
