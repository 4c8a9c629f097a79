package stale

import (
	"math"
	"time"
)

// Early says whether this reader should compute a value again although it is
// still [Fresh], so that a key in demand is renewed before it runs out:
//
//	age + cost · Beta · (−ln u) ≥ Fresh
//
// This is XFetch, from Vattani, Chierichetti and Lowenstein, "Optimal
// Probabilistic Cache Stampede Prevention", VLDB 2015. cost is how long the
// value took to compute; u is drawn uniformly from (0, 1] for every reader anew.
// One reader at that age therefore says yes with probability
// exp(−(Fresh − age) / (Beta · cost)): the nearer the end and the dearer the
// value, the likelier; and the more readers, the surer that one of them does.
//
// Call it on the policy the value was published under (see Spread).
//
// It differs from the paper in three ways:
//   - The head start is at most half of Fresh. An unlucky draw, or a cost near
//     Fresh, can't bring a value back to computation in the first half of its
//     life.
//   - It is only about values that are Fresh. At age Fresh and beyond, or at a
//     negative age, the answer is false and [Policy.Phase] decides.
//   - A u outside (0, 1], NaN too, is never early. A broken source of draws then
//     costs the head start; were it always early, every reader would recompute.
//
// A Beta or a cost that is 0 or less switches it off.
func (p Policy) Early(age, cost time.Duration, u float64) bool {
	// Asked in the positive: NaN fails every comparison.
	on := cost > 0 && p.Beta > 0 && u > 0 && u <= 1
	if !on || p.Phase(age) != Fresh {
		return false
	}
	// The head start stays a float and is only compared, as it may be beyond any
	// Duration. left can't overflow: 0 ≤ age < Fresh.
	left := p.Fresh - age
	return left <= p.Fresh/2 && float64(left) <= float64(cost)*p.Beta*-math.Log(u)
}
