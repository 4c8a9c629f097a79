package linear

// Register is what a store has of one name and schema: an entry, and the numbers that decide who may write.
type Register struct {
	last  int64  // the last number that anybody was given
	bar   int64  // lower numbers are refused
	fence int64  // of the entry, or of the removal that stands in its place
	value string // of the entry, "" for none
}

// Begun is a number that was taken. Numbers only grow.
type Begun struct {
	Fence int64
	Seen  int64  // what the client knew
	Newer string // the entry that stands if its number is higher, else ""
	Of    int64  // its number
}

// From takes the number.
func (b Begun) From(r Register) []Register {
	newer := r.value != "" && r.fence > b.Seen
	switch {
	case b.Fence <= r.last:
		return nil
	case newer && (b.Newer != r.value || b.Of != r.fence), !newer && b.Newer != "":
		return nil
	}
	r.last = b.Fence
	return []Register{r}
}

// Written is an entry that was accepted, or with no value a removal.
type Written struct {
	Fence int64
	Value string
}

// From writes, if no later write or deletion stands.
func (w Written) From(r Register) []Register {
	if r.bars(w.Fence) {
		return nil
	}
	r.fence, r.value = w.Fence, w.Value
	return []Register{r}
}

// Refused is a write that was refused: only a later write or deletion is a reason.
type Refused struct{ Fence int64 }

// From changes nothing.
func (f Refused) From(r Register) []Register {
	if !r.bars(f.Fence) {
		return nil
	}
	return []Register{r}
}

func (r Register) bars(fence int64) bool { return fence < r.bar || fence < r.fence }

// Erased is a deletion. What has begun before it can't write any more.
type Erased struct{}

// From erases.
func (Erased) From(r Register) []Register { return []Register{{last: r.last, bar: r.last + 1}} }

// Found is what a reader found, "" for nothing.
type Found struct {
	Value string
	Fence int64
}

// From changes nothing.
func (f Found) From(r Register) []Register {
	if f.Value != r.value || f.Value != "" && f.Fence != r.fence {
		return nil
	}
	return []Register{r}
}
