package redisserver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Watched is a primary with two replicas, and three sentinels that watch them: one of the replicas takes over when two sentinels have
// not heard of the primary for half a second.
type Watched struct {
	Name      string    // by which the sentinels know the primary
	Nodes     []*Server // the primary, then its replicas; a failover swaps roles
	Sentinels []*Server
}

// StartWatched runs all six and returns once every sentinel knows all others. The args are appended to the command lines of the nodes.
func StartWatched(args ...string) (*Watched, error) {
	nodes, err := startAll(3, "", append([]string{"--repl-diskless-sync-delay", "0"}, args...)...)
	if err != nil {
		return nil, err
	}
	sentinels, err := startAll(3, "sentinel.conf", "--sentinel")
	if err != nil {
		return nil, errors.Join(err, stopAll(nodes))
	}
	w := &Watched{Name: "watched", Nodes: nodes, Sentinels: sentinels}
	if err := w.form(); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

// Addrs are the addresses of the sentinels.
func (w *Watched) Addrs() []string {
	addrs := make([]string, len(w.Sentinels))
	for i, s := range w.Sentinels {
		addrs[i] = s.Addr
	}
	return addrs
}

// Primary is the address of the primary that all sentinels agree on, "" while they do not.
func (w *Watched) Primary() (addr string) {
	for _, s := range w.Sentinels {
		info, _ := s.command("INFO sentinel") // "" when there was no answer
		_, rest, _ := strings.Cut(info, "address=")
		said, _, _ := strings.Cut(rest, ",")
		if said == "" || addr != "" && said != addr {
			return ""
		}
		addr = said
	}
	return addr
}

// Stop stops all servers: the sentinels first, who would see a failure in the end of the others.
func (w *Watched) Stop() error { return errors.Join(stopAll(w.Sentinels), stopAll(w.Nodes)) }

func (w *Watched) form() error {
	host, port, err := net.SplitHostPort(w.Nodes[0].Addr)
	if err != nil {
		return fmt.Errorf("redisserver: %w", err)
	}
	for _, n := range w.Nodes[1:] {
		if _, err := n.command("REPLICAOF %s %s", host, port); err != nil {
			return err
		}
	}
	replicates := func(n *Server) bool { return n.says("INFO replication", "master_link_status:up") }
	if err := eventually("replicas follow", func() bool { return replicates(w.Nodes[1]) && replicates(w.Nodes[2]) }); err != nil {
		return err
	}
	for _, s := range w.Sentinels {
		for _, command := range []string{
			fmt.Sprintf("MONITOR %s %s %s 2", w.Name, host, port),
			fmt.Sprintf("SET %s down-after-milliseconds 500 failover-timeout 5000", w.Name),
		} {
			if _, err := s.command("SENTINEL %s", command); err != nil {
				return err
			}
		}
	}
	return eventually("sentinels meet", func() bool {
		return !slices.ContainsFunc(w.Sentinels, func(s *Server) bool { return !s.says("INFO sentinel", "slaves=2,sentinels=3") })
	})
}
