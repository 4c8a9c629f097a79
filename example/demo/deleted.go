package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/bellwether-cache/bellwether/example/load"
	"github.com/bellwether-cache/bellwether/example/site"
)

// deleted deletes a page while it is rendered, without and with protection.
func (s *Stage) deleted(ctx context.Context) (*section, error) {
	show := &section{
		title: fmt.Sprintf("Deletes under computation: %s is deleted at one replica while another renders it", pageDeleted),
		head:  []string{"", "in the cache then", "next request gets"},
		see:   "Who asked before the delete may have the page; it does not come back into the cache, and who asks later gets a new one.",
	}
	_, done := s.Progress.Start("deleted under computation", 1)
	defer done()
	plain, err := s.deleteUnder(ctx, site.PathPlain)
	if err != nil {
		return nil, err
	}
	show.row("GET, render, SET", plain.kept(), plain.later())
	protected, err := s.deleteUnder(ctx, site.PathPages)
	if err != nil {
		return nil, err
	}
	show.row("Bellwether", protected.kept(), protected.later())
	show.expect(protected.first.Status == http.StatusOK, "the request under way: status %d", protected.first.Status)
	show.expect(protected.held.Status == http.StatusGatewayTimeout, "the deleted page is in the cache")
	show.expect(protected.next.Status == http.StatusOK, "the next request: status %d", protected.next.Status)
	show.expect(protected.next.Rendering != protected.first.Rendering, "the next request got the deleted page")
	return show, nil
}

// deletion is what three requests got: one that was under way, one that only looked, one that came afterwards.
type deletion struct{ first, held, next load.Sample }

func (d deletion) kept() string {
	if d.held.Status == http.StatusOK {
		return "the deleted page"
	}
	return "nothing"
}

func (d deletion) later() string {
	if d.next.Rendering == d.first.Rendering {
		return "the deleted page"
	}
	return "a new page"
}

func (s *Stage) deleteUnder(ctx context.Context, path string) (deletion, error) {
	urls := s.Fleet.URLs(path + pageDeleted)
	last := urls[len(urls)-1]
	gate := s.Fleet.Origin.Hold(pageDeleted) // so that the delete falls into the rendering in every run
	defer gate.Open()
	first := make(chan load.Sample, 1)
	go func() { first <- s.client.Get(ctx, urls[0]) }()
	select {
	case <-gate.Entered():
	case early := <-first:
		return deletion{}, errors.Join(fmt.Errorf("demo: status %d without a rendering", early.Status), early.Err)
	}
	removed := s.client.Delete(ctx, last)
	gate.Open()
	d := deletion{first: <-first}
	d.held = s.client.Held(ctx, last)
	d.next = s.client.Get(ctx, last)
	for _, sample := range []load.Sample{removed, d.first, d.held, d.next} {
		if sample.Err != nil {
			return deletion{}, sample.Err
		}
	}
	return d, nil
}
