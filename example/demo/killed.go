package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/bellwether-cache/bellwether/example/load"
	"github.com/bellwether-cache/bellwether/example/site"
)

const gather = 5 * time.Second // longest until the whole crowd waits

// killed has another process render, lets the crowd wait for it, and kills it.
func (s *Stage) killed(ctx context.Context) (*section, error) {
	lease := s.Fleet.Options.Lease
	show := &section{
		title: fmt.Sprintf("Kills a holder: another process renders %s and is killed (-9) while %d requests wait", pageKilled, s.crowd()),
		head:  []string{"lease", "kill to value", "renderings after it", "answers"},
		see:   "Nobody has to notice the death: the lease runs out, one of those who wait is granted the next, all get its page.",
	}
	other, err := s.Holder(ctx, pageKilled)
	if err != nil {
		return nil, err
	}
	answers := make(chan load.Report, 1)
	go func() {
		report, _ := s.burst(ctx, "holder killed", site.PathPages+pageKilled) // the error is in the report too
		answers <- report
	}()
	waiting := s.gather(ctx)
	early := s.Fleet.Origin.Count(pageKilled)
	killed := time.Now()
	if err := other.Kill(); err != nil {
		return nil, err
	}
	report := <-answers
	took := time.Since(killed)
	if report.Err != nil {
		return nil, report.Err
	}
	renderings := s.Fleet.Origin.Count(pageKilled)
	show.row(lease, took, renderings, report.Answers())
	show.expect(waiting, "only %d of %d requests waited for the holder", s.Fleet.Underway(), s.crowd())
	show.expect(early == 0, "%d renderings while the holder lived", early)
	show.expect(renderings == 1, "%d renderings instead of 1", renderings)
	show.expect(report.Statuses[http.StatusOK] == s.crowd(), "answers by status %v", report.Statuses)
	limit := lease + 5*s.once + time.Second // the machine is busy, too
	show.expect(took <= limit, "took %s, more than %s", short(took), short(limit))
	return show, nil
}

// gather waits until every request of the crowd has reached its replica, and a moment more.
func (s *Stage) gather(ctx context.Context) bool {
	for end := time.Now().Add(gather); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if s.Fleet.Underway() == s.crowd() {
			time.Sleep(100 * time.Millisecond)
			return s.Fleet.Underway() == s.crowd()
		}
	}
	return false
}
