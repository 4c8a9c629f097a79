// Package locks measures leases of one Redis server, and of a quorum of several, against two other libraries, side by side. It is a module of its own so that nobody
// who uses Bellwether pulls them in.
package locks
