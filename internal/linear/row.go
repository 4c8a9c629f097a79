package linear

// Row is a row of a source and what a cache in front of it may answer: a version that is there already, and not older
// than what the last deletion or write through the cache left. That is the promise: an answer was valid at a moment after
// the question, and once a deletion has returned nothing from before it is given.
type Row struct {
	version int64 // of the source; they are counted
	floor   int64 // the oldest version that may be given
}

// Changed is a new version of the source.
type Changed struct{ Version int64 }

// From changes the source.
func (c Changed) From(r Row) []Row {
	if c.Version != r.version+1 {
		return nil
	}
	r.version = c.Version
	return []Row{r}
}

// Deleted is a deletion through the cache that returned without an error. (One that failed forbids nothing: it need
// not be recorded.)
type Deleted struct{}

// From forbids what is older than the source is now.
func (Deleted) From(r Row) []Row {
	r.floor = r.version
	return []Row{r}
}

func (Deleted) settles() {} // what comes later has a lower number, and is refused

// Put is a version that was written through the cache, in place of whatever was there.
type Put struct{ Version int64 }

// From makes it what may be given.
func (p Put) From(r Row) []Row {
	if p.Version > r.version {
		return nil
	}
	r.floor = p.Version
	return []Row{r}
}

func (Put) settles() {}

// Given is an answer.
type Given struct{ Version int64 }

// From changes nothing.
func (g Given) From(r Row) []Row {
	if g.Version < r.floor || g.Version > r.version {
		return nil
	}
	return []Row{r}
}
