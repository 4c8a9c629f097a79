// Package site serves the documentation of the Go standard library from several replicas that share one Redis server.
package site

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Fleet is several replicas of the same site.
type Fleet struct {
	Options  Options
	Origin   *Origin
	Replicas []*Replica
}

// Start starts a fleet. client is called once per replica, which closes what it gets.
func Start(client func() *redis.Client, origin *Origin, o Options) (*Fleet, error) {
	f := &Fleet{Options: o, Origin: origin}
	for i := range o.Replicas {
		addr, err := nth(o.Addr, i)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		replica, err := start(strconv.Itoa(i+1), addr, client(), origin, o)
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.Replicas = append(f.Replicas, replica)
	}
	return f, nil
}

// URLs are the addresses of one page, replica by replica.
func (f *Fleet) URLs(path string) []string {
	var urls []string
	for _, r := range f.Replicas {
		urls = append(urls, r.URL+path)
	}
	return urls
}

// Failures is how often Redis failed or took too long, in the eyes of any replica.
func (f *Fleet) Failures() int {
	n := 0
	for _, r := range f.Replicas {
		n += r.Failures()
	}
	return n
}

// Underway is the number of requests that the fleet has not answered yet.
func (f *Fleet) Underway() int {
	n := 0
	for _, r := range f.Replicas {
		n += r.Underway()
	}
	return n
}

// Close closes all replicas.
func (f *Fleet) Close() error {
	var errs []error
	for _, r := range f.Replicas {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// nth is the address of the nth replica. Only this machine may reach it: anyone who does can delete pages.
func nth(addr string, n int) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("site: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return "", fmt.Errorf("site: listen on %q: not a loopback address as 127.0.0.1 or ::1", host)
	}
	first, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("site: listen on port %q: not a number up to 65535", port)
	}
	if first == 0 {
		return addr, nil
	}
	return net.JoinHostPort(host, strconv.Itoa(int(first)+n)), nil
}
