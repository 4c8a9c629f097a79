package site

import "time"

// Where a replica serves what.
const (
	PathPages   = "/pkg/"    // pages that say themselves how long they last
	PathHot     = "/hot/"    // pages that say nothing: the policy Short gives them a lifetime
	PathPlain   = "/plain/"  // ask Redis, render what is missing, store it
	PathYou     = "/you"     // for one reader alone
	PathLive    = "/live"    // a stream that has no end to wait for
	PathFailing = "/failing" // works once, and never again
)

// Host is the name under which readers know the site: the same for all replicas, as behind a load balancer.
const Host = "docs.example"

// Options describes a fleet.
type Options struct {
	Replicas int           // how many; at least 1
	Addr     string        // where the first replica listens; the others take the ports after it, port 0 any free ones
	Prefix   string        // of every key in Redis
	Lease    time.Duration // longest silence of a replica that renders, before another may take over
}
