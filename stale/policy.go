// Package stale says how long a computed value stays useful.
//
// A value's age runs through up to four phases: [Fresh], [WhileRevalidate],
// [IfError] and [Expired]. A [Policy] holds the lengths of these windows and
// judges an age by them. The package reads no clock and draws no random number:
// ages and draws are arguments, so every answer can be repeated in a test.
package stale

import (
	"math"
	"time"
)

// Policy says how long a value may be served and when it is to be computed
// again. The windows follow one another and add up, they do not overlap:
//
//	0 ─── Fresh ───┬─── WhileRevalidate ───┬─── IfError ───┬─── Keep ─── gone
//	      serve    │  serve, recompute     │  serve only   │  expired: serve
//	               │  behind the answer    │  in trouble   │  no more
//
// Only Fresh is required; every other zero switches its feature off. No time is
// shorter than 1 ms, which tells 60 (nanoseconds!) from 60 * time.Second.
// [Policy.Validate] says what is wrong with a policy. The other methods take any
// policy without panicking: a negative window counts as 0.
type Policy struct {
	// Fresh is how long a value is served without question. Required, at least
	// 1 ms.
	Fresh time.Duration

	// WhileRevalidate follows Fresh: the value is still served at once, and
	// computed again behind the answer (stale-while-revalidate, RFC 5861 §3).
	WhileRevalidate time.Duration

	// IfError follows WhileRevalidate: the value is served only in place of an
	// error or a wait (stale-if-error, RFC 5861 §4).
	IfError time.Duration

	// Keep follows IfError: the value is served no more, but kept for the next
	// computation to see, which may find that it still holds (as a cache keeps
	// what it revalidates, RFC 9111 §4.3).
	Keep time.Duration

	// Jitter spreads the end of Fresh so that values stored together do not run
	// out together: 0.1 shortens Fresh by up to a tenth. From 0 to 1. It is
	// applied once, at publication (see Spread), never per reader, so that every
	// replica sees the same end.
	Jitter float64

	// Beta recomputes values that are in demand shortly before Fresh ends (see
	// Early). 0 is off, 1 is optimal, more is earlier. Finite and ≥ 0.
	Beta float64

	// Cooldown follows a failed computation: the whole fleet makes no new attempt
	// for that long.
	Cooldown time.Duration

	// Negative is how long "not found" is remembered (see Absent); with 0 it is
	// not remembered at all.
	Negative time.Duration
}

// Phase says what a value of that age is good for. A window includes its start
// and excludes its end, as in RFC 9111 §4.2: at age Fresh a value is no longer
// [Fresh].
//
// A negative age means the value is dated in the future, so nobody knows how old
// it is. It is judged as if Fresh had just ended: were it fresh, a clock that
// jumped could keep it so for years. A caller that measures ages with a known
// error, such as half a round trip, raises ages within that error to 0 first.
func (p Policy) Phase(age time.Duration) Phase {
	freshEnd := extend(0, p.Fresh)
	revalidateEnd := extend(freshEnd, p.WhileRevalidate)
	if age < 0 {
		age = freshEnd
	}
	switch {
	case age < freshEnd:
		return Fresh
	case age < revalidateEnd:
		return WhileRevalidate
	case age < extend(revalidateEnd, p.IfError):
		return IfError
	default:
		return Expired
	}
}

// Retain is how long a value is worth keeping: the sum of the four windows, and
// so the TTL a store gives it. A sum that overflows is clamped to
// [math.MaxInt64], about 292 years.
//
// WARNING: 0 means "do not store", while many stores read a TTL of 0 as "keep
// for ever". Only a policy that fails Validate, or the [Policy.Absent] of a
// policy without Negative, has a Retain of 0.
func (p Policy) Retain() time.Duration {
	end := extend(extend(0, p.Fresh), p.WhileRevalidate)
	return extend(extend(end, p.IfError), p.Keep)
}

// Absent is the policy of a "not found" answer: it is fresh for Negative and
// useless after that, since a stale "not found" would hide a value that exists.
// Jitter, Beta and Cooldown are kept: absent keys are asked for in bursts too.
//
// Without Negative the result remembers nothing: every age is [Expired] and
// Retain is 0.
func (p Policy) Absent() Policy {
	p.Fresh, p.WhileRevalidate, p.IfError, p.Keep = p.Negative, 0, 0, 0
	return p
}

// extend moves end by a window; it neither wraps nor goes backwards.
func extend(end, window time.Duration) time.Duration {
	window = max(window, 0)
	if window > math.MaxInt64-end {
		return math.MaxInt64
	}
	return end + window
}
