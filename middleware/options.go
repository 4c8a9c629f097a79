package middleware

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/bellwether-cache/bellwether/stale"
)

// Options configures the middleware. The zero value does what RFC 9111 says for a shared cache: only what the handler
// gives a lifetime is stored.
type Options struct {
	// Key says which requests have the same answer.
	Key Key

	// Policy holds where the handler says nothing. With Fresh, responses without a lifetime of their own are stored
	// for it, if their status is one that may be cached unsaid (200, 203, 204, 300, 301, 308), and with Negative "not
	// found" is (404, 410). WhileRevalidate and IfError apply to all responses that don't say otherwise; IfError is
	// 5 minutes if it is 0, and off if it is less. Jitter spreads the end of Fresh. What the handler forbids stays
	// forbidden. Beta and Cooldown are those of the cache's own options; Keep is an hour for responses that have a validator.
	Policy stale.Policy

	// Statuses are the lifetimes of responses with these statuses whose handler says nothing, in place of Policy's, from 1 ms on. 0: such
	// responses are not stored.
	Statuses map[int]time.Duration

	// Heuristic guesses the lifetime of a response that says nothing, from its Last-Modified (RFC 9111 §4.2.2).
	Heuristic bool

	// MaxBody is the size in bytes of the largest body that is stored; larger ones go to the client as they are
	// written. Default 1 MiB.
	MaxBody int

	// Targeted are the names of fields that replace Cache-Control for this cache, first come first served (RFC 9213),
	// such as CDN-Cache-Control. They are passed on to clients.
	Targeted []string

	// Cookies says that no answer depends on a Cookie. Without it, a response to a request with one is only shared if
	// it is public, or names Cookie in Vary.
	Cookies bool

	// SetCookies stores Set-Cookie. WARNING: everybody gets the same cookies.
	SetCookies bool

	// Drop are response fields that are about one request, and not stored: Server-Timing, X-Request-Id.
	Drop []string

	// Tag gives stored responses a strong ETag, if the handler didn't.
	Tag bool

	// Obey heeds what clients demand in Cache-Control: no-cache and its like are answered by the handler. All who
	// demand it at once share one answer, but they can keep the handler busy; so it is off.
	Obey bool

	// Name is the cache's in Cache-Status (RFC 9211). Default "Bellwether".
	Name string

	// Silent leaves Cache-Status out.
	Silent bool

	// Unpurged is told when a request that changes something could not invalidate what is stored for its URI. It is tried again
	// in the background.
	Unpurged func(error)
}

const (
	defaultMaxBody = 1 << 20
	defaultIfError = 5 * time.Minute
	defaultName    = "Bellwether"
)

// complete fills in the defaults and reports all options that can't work.
func (o Options) complete() (Options, error) {
	faults := []error{o.Key.check(), o.checkPolicy()}
	o.Policy.IfError = max(0, cmp.Or(o.Policy.IfError, defaultIfError))
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.Name = cmp.Or(o.Name, defaultName)
	if o.MaxBody < 0 {
		faults = append(faults, fmt.Errorf("middleware: Options.MaxBody is %d, must be positive (0: %d)", o.MaxBody, defaultMaxBody))
	}
	for status, d := range o.Statuses {
		switch {
		case status < 200 || status > 599 || status == http.StatusPartialContent || status == http.StatusNotModified:
			faults = append(faults, fmt.Errorf("middleware: Options.Statuses has %d, must be from 200 to 599 and neither 206 nor 304", status))
		case d != 0 && d < time.Millisecond:
			faults = append(faults, fmt.Errorf("middleware: Options.Statuses[%d] is %v, must be 0 or at least 1ms; a bare number means nanoseconds", status, d))
		}
	}
	o.Key.Headers, faults = canonicalNames("Key.Headers", o.Key.Headers, faults)
	o.Targeted, faults = canonicalNames("Options.Targeted", o.Targeted, faults)
	o.Drop, faults = canonicalNames("Options.Drop", o.Drop, faults)
	return o, errors.Join(faults...)
}

// checkPolicy is Validate for a policy that needs no Fresh, and may switch IfError off.
func (o Options) checkPolicy() error {
	p := o.Policy
	p.IfError = max(0, p.IfError)
	if p.Fresh == 0 {
		p.Fresh = time.Millisecond
	}
	if err := p.Validate(); err != nil {
		return fmt.Errorf("middleware: Options.Policy: %w", err)
	}
	return nil
}

func canonicalNames(option string, names []string, faults []error) ([]string, []error) {
	names = slices.Clone(names)
	for i, name := range names {
		if !isToken(name) {
			faults = append(faults, fmt.Errorf("middleware: %s has %q, must be names of header fields", option, name))
		}
		names[i] = http.CanonicalHeaderKey(name)
	}
	return names, faults
}

func (o Options) sharing() sharing {
	return sharing{cookies: o.Cookies, setCookies: o.SetCookies, unsaid: true, keyed: o.Key.Headers}
}
