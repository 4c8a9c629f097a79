package load

import (
	"math"
	"slices"
	"time"
)

// Report sums up many samples.
type Report struct {
	Statuses   map[int]int    // answers per HTTP status
	Outcomes   map[string]int // answers per outcome of the cache
	Renderings map[string]int // answers per rendering
	Err        error          // the first failure; the other numbers leave failures out
	took       []time.Duration
}

func newReport(samples []Sample) Report {
	r := Report{Statuses: map[int]int{}, Outcomes: map[string]int{}, Renderings: map[string]int{}}
	for _, s := range samples {
		if s.Err != nil {
			if r.Err == nil {
				r.Err = s.Err
			}
			continue
		}
		r.Statuses[s.Status]++
		r.Outcomes[s.Outcome]++
		r.Renderings[s.Rendering]++
		r.took = append(r.took, s.Took)
	}
	slices.Sort(r.took)
	return r
}

// Answers is the number of requests that were answered.
func (r Report) Answers() int { return len(r.took) }

// Quantile is the time within which the share q of the answers came (nearest rank); 1 is the slowest.
func (r Report) Quantile(q float64) time.Duration {
	if len(r.took) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(r.took))))
	return r.took[min(max(rank, 1), len(r.took))-1]
}
