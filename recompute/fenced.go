package recompute

// Fenced is a [Lease] with a number that only grows: each grant of a key has a higher one than all grants before it. What the work
// writes to can keep the highest it has seen and refuse lower ones, for example
//
//	UPDATE reports SET content = $1, fencing_token = $2 WHERE id = $3 AND fencing_token < $2
//
// so that a holder that was paused past the end of its lease changes nothing any more. (With <= where one holder writes more than
// once.) Numbers are below 2⁵³ and fit a BIGINT.
type Fenced interface {
	// Fence returns the number of this grant. It does not change when the lease is extended.
	Fence() int64
}
