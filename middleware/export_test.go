package middleware

import "time"

// The rules are functions of headers and bytes that nobody outside needs; their tests do.

type (
	Directives = directives
	Report     = report
)

var (
	ParseCacheControl = parseCacheControl
	Effective         = effective
	Has               = directives.has
	Allows            = directives.allows
	Seconds           = directives.seconds
	Fields            = directives.fields
	NoCache           = directives.noCache
	Private           = directives.private

	ParseDate            = parseDate
	Lifetime             = lifetime
	Heuristic            = heuristic
	CorrectedAge         = correctedAge
	MustRevalidate       = mustRevalidate
	StaleWhileRevalidate = staleWhileRevalidate
	StaleIfError         = staleIfError

	EndToEnd  = endToEnd
	Canonical = canonical
	SetFields = setFields

	Varies  = varies
	Variant = variant

	WithoutConditions = withoutConditions
	ForOrigin         = forOrigin
	NotModified       = notModified
	HeadersOf304      = headersOf304
	Conditions        = conditions
	Freshen           = freshen
	WantsPart         = wantsPart
	ServePart         = servePart
	Invalidated       = invalidated
)

// Never is the longest time that a header can say.
const Never = never

// LongestKey is how long a key is before its end becomes a digest.
const LongestKey = longestKey

// Of returns the key of a request.
var Of = Key.of

// Check says what can't work in a key.
var Check = Key.check

// Sharing is what the user allows, in the order of the fields.
func Sharing(cookies, setCookies, unsaid bool, keyed ...string) sharing {
	return sharing{cookies, setCookies, unsaid, keyed}
}

var (
	Storable = storable
	Reusable = reusable
)

// Accepts reports whether a client with these request fields takes a response of this age and lifetime.
var (
	ParseRequested = parseRequested
	Accepts        = requested.accepts
)

// OnlyIfCached reports whether the client wants no handler to be asked.
func (q requested) OnlyIfCached() bool { return q.onlyIfCached }

// NoStore reports whether the client wants nothing stored.
func (q requested) NoStore() bool { return q.noStore }

// Hits is the report of a hit that has so long to live.
func Hits(ttl time.Duration) Report { return report{hit: true, ttl: ttl, timed: true} }

// Forwards is the report of a request that went to the handler.
func Forwards(why string, status int, ttl time.Duration, stored, collapsed bool) Report {
	return report{fwd: forwarded(why), fwdStatus: status, ttl: ttl, timed: true, stored: stored, collapsed: collapsed}
}

// Detailed is a report that says more.
func Detailed(r Report, key, detail string) Report {
	r.key, r.detail = key, detail
	return r
}

// AddReport writes a report.
var AddReport = report.add

// Passes is the memory of keys whose answers are for nobody else.
type Passes = passes

// MostPasses is how many it remembers.
const MostPasses = mostPasses

var (
	AddPass = (*passes).add
	HasPass = (*passes).has
)

// Len returns how many are remembered.
func (p *passes) Len() int { return len(p.young) + len(p.old) }
