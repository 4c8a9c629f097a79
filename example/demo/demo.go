// Package demo shows, through real HTTP and on real pages, what a cache does in a stampede, and measures it.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/bellwether-cache/bellwether/example/holder"
	"github.com/bellwether-cache/bellwether/example/load"
	"github.com/bellwether-cache/bellwether/example/site"
)

// ErrBroken is wrapped by the error for promises that were not kept.
var ErrBroken = errors.New("demo: not as promised")

// The page that is asked for; a part that needs a cold one takes another.
const (
	page        = "net/http"
	pageKilled  = "go/types"
	pageDeleted = "os"
	pageUnknown = "no/such/package"
)

// Stage is where the demonstration takes place.
type Stage struct {
	Fleet    *site.Fleet
	Clients  int           // per replica, at once
	Steady   time.Duration // of the part under steady load
	Library  site.Library  // behind the fleet, to take the time of one rendering
	Holder   func(ctx context.Context, path string) (*holder.Holder, error)
	Out      io.Writer
	Progress *Progress

	client *load.Client
	once   time.Duration // what rendering page takes when nothing else goes on
}

// Run runs all parts and prints what each has to show. Promises that were not kept are an ErrBroken, after the last part.
func (s *Stage) Run(ctx context.Context) error {
	s.client = load.New(s.Clients)
	defer s.client.Close()
	if err := s.measure(ctx); err != nil {
		return err
	}
	broken := 0
	for i, part := range []func(context.Context) (*section, error){
		s.stampede, s.expiry, s.killed, s.deleted, s.unknown,
	} {
		before := s.Fleet.Failures()
		shown, err := part(ctx)
		if err != nil {
			return err
		}
		shown.failures = s.Fleet.Failures() - before
		if err := shown.print(s.Out, i+1); err != nil {
			return err
		}
		if shown.failed() {
			broken++
		}
	}
	if broken > 0 {
		return fmt.Errorf("%w in %d of the parts above", ErrBroken, broken)
	}
	return nil
}

// measure renders the page twice, the first time to warm the files.
func (s *Stage) measure(ctx context.Context) error {
	for range 2 {
		began := time.Now()
		if _, err := s.Library.Package(ctx, page); err != nil {
			return err
		}
		s.once = time.Since(began)
	}
	return nil
}

// crowd is the number of requests that come at once.
func (s *Stage) crowd() int { return s.Clients * len(s.Fleet.Replicas) }

// burst sends the crowd to one page.
func (s *Stage) burst(ctx context.Context, what, path string) (load.Report, error) {
	urls := s.Fleet.URLs(path)
	if err := s.client.Warm(ctx, urls, s.Clients); err != nil {
		return load.Report{Err: err}, err
	}
	step, done := s.Progress.Start(what, s.crowd())
	defer done()
	report := s.client.Burst(ctx, urls, s.Clients, step)
	return report, report.Err
}
