package redisserver

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Cluster is a Redis Cluster, all of it on this machine. Its nodes can be killed, paused and restarted one by one.
type Cluster struct {
	Nodes []*Server // as many primaries as it was started with, then a replica for each, in the same order; a failover swaps roles
}

const slots = 16384

// StartCluster runs a cluster of so many primaries, each with a replica, and returns once every node says that it is whole. A node
// that does not answer for a second is taken for dead, and its replica takes over about a second later. The args are appended to
// each node's command line.
func StartCluster(primaries int, args ...string) (*Cluster, error) {
	nodes, err := startAll(2*primaries, "", append([]string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
		"--cluster-replica-validity-factor", "0", // a replica that was cut off for long takes over all the same: there is no other
		"--cluster-allow-replica-migration", "no", // and it stays with its primary
		"--repl-diskless-sync-delay", "0",
	}, args...)...)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Nodes: nodes}
	if err := c.form(primaries); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Addrs are the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr
	}
	return addrs
}

// Stop stops all nodes.
func (c *Cluster) Stop() error { return stopAll(c.Nodes) }

// Whole reports whether every node that is up says that all slots are served.
func (c *Cluster) Whole() bool {
	return !slices.ContainsFunc(c.Nodes, func(n *Server) bool { return n.up() && !n.says("CLUSTER INFO", "cluster_state:ok") })
}

// Owner is the address of the primary of a key's slot, "" while the nodes that are up do not agree on one. The key is sent as a word
// of an inline command.
func (c *Cluster) Owner(key string) (addr string) {
	for _, n := range c.Nodes {
		if !n.up() {
			continue
		}
		said := ""
		switch line, _ := n.line("EXISTS " + key); { // "" when there was no answer
		case strings.HasPrefix(line, ":"):
			said = n.Addr
		case strings.HasPrefix(line, "-MOVED "):
			said = line[strings.LastIndex(line, " ")+1:]
		}
		if said == "" || addr != "" && said != addr {
			return ""
		}
		addr = said
	}
	return addr
}

// form makes a cluster of nodes that know nothing of each other.
func (c *Cluster) form(primaries int) error {
	for i, n := range c.Nodes {
		if _, err := n.command("CLUSTER SET-CONFIG-EPOCH %d", i+1); err != nil { // or they would have to agree on who is first
			return err
		}
	}
	for i, n := range c.Nodes[:primaries] {
		if _, err := n.command("CLUSTER ADDSLOTSRANGE %d %d", i*slots/primaries, (i+1)*slots/primaries-1); err != nil {
			return err
		}
	}
	for _, n := range c.Nodes[1:] {
		_, port, err := net.SplitHostPort(n.Addr)
		if err != nil {
			return fmt.Errorf("redisserver: %w", err)
		}
		if _, err := c.Nodes[0].command("CLUSTER MEET 127.0.0.1 %s", port); err != nil {
			return err
		}
	}
	known := "cluster_known_nodes:" + strconv.Itoa(len(c.Nodes))
	if err := eventually("nodes meet", func() bool { return c.all("CLUSTER INFO", known) }); err != nil {
		return err
	}
	for i, n := range c.Nodes[primaries:] {
		id, err := c.Nodes[i].command("CLUSTER MYID")
		if err != nil {
			return err
		}
		// Refused while the node does not know yet that the other is a primary.
		if err := eventually("a replica joins", func() bool { return n.says("CLUSTER REPLICATE "+id, "OK") }); err != nil {
			return err
		}
	}
	return c.settled(primaries)
}

// settled waits until the replicas have all that their primaries have, and everybody knows whose replicas they are.
func (c *Cluster) settled(primaries int) error {
	return eventually("the cluster is whole", func() bool {
		for _, n := range c.Nodes[primaries:] {
			if !n.says("INFO replication", "master_link_status:up") {
				return false
			}
		}
		for _, n := range c.Nodes {
			view, err := n.command("CLUSTER NODES")
			if err != nil || strings.Count(view, "slave ") != primaries {
				return false
			}
		}
		return c.all("CLUSTER INFO", "cluster_state:ok")
	})
}

// all reports whether the replies of all nodes hold the text.
func (c *Cluster) all(command, text string) bool {
	return !slices.ContainsFunc(c.Nodes, func(n *Server) bool { return !n.says(command, text) })
}
