package stale

import "time"

// minSpread is the least that a spread leaves of Fresh. Redis counts TTLs in
// milliseconds, and what rounds to 0 there is refused or kept for ever.
const minSpread = time.Millisecond

// Spread is the policy of one publication: Fresh shortened to
// Fresh · (1 − Jitter · u), with u drawn uniformly from [0, 1). Values stored in
// the same instant then run out one by one.
//
// Fresh is never lengthened, so what the policy promises stays an upper bound;
// and it is never cut below a millisecond, or below itself where it is less. The
// other windows keep their lengths and begin earlier. Jitter is 0 in the result:
// spreading twice is spreading once.
//
// A Jitter or u outside 0…1 counts as the nearer end, NaN as 0.
func (p Policy) Spread(u float64) Policy {
	cut := float64(p.Fresh) * unit(p.Jitter) * unit(u)
	p.Jitter = 0
	floor := min(p.Fresh, minSpread)
	// Asked in floats: a cut that rounded up to 2⁶³ is no Duration any more.
	if cut >= float64(p.Fresh) {
		p.Fresh = floor
		return p
	}
	p.Fresh = max(p.Fresh-time.Duration(cut), floor)
	return p
}

// unit brings x into [0, 1], NaN to 0.
func unit(x float64) float64 {
	if x > 0 {
		return min(x, 1)
	}
	return 0
}
