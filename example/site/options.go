package site

import (
	"time"

	"github.com/bellwether-cache/bellwether/stale"
)

// Where the shelves are mounted.
const (
	PathPages = "/pkg/"   // a Bellwether cache with the policy Lasting
	PathHot   = "/hot/"   // a Bellwether cache with the policy Short
	PathPlain = "/plain/" // ask Redis, render what is missing, store it
)

// Lasting suits pages that change seldom.
var Lasting = stale.Policy{
	Fresh:           time.Minute,
	WhileRevalidate: 10 * time.Minute,
	IfError:         time.Hour,
	Negative:        30 * time.Second,
	Cooldown:        time.Second,
}

// Short lets a page run out all the time, so that one can watch.
var Short = stale.Policy{
	Fresh:           500 * time.Millisecond,
	WhileRevalidate: time.Minute,
}

// Options describes a fleet.
type Options struct {
	Replicas int           // how many; at least 1
	Addr     string        // where the first replica listens; the others take the ports after it, port 0 any free ones
	Prefix   string        // of every key in Redis
	Lease    time.Duration // longest silence of a replica that renders, before another may take over
}

// PagesPrefix is the prefix of the cache at PathPages, for a process that shares it.
func (o Options) PagesPrefix() string { return o.Prefix + "pkg" }
