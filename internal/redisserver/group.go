package redisserver

import (
	"errors"
	"slices"
	"sync"
)

// startAll starts n servers at once, each with the same args. It starts all or none.
func startAll(n int, config string, args ...string) ([]*Server, error) {
	servers, errs := make([]*Server, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { servers[i], errs[i] = boot(config, args) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		started := slices.DeleteFunc(servers, func(s *Server) bool { return s == nil })
		return nil, errors.Join(err, stopAll(started))
	}
	return servers, nil
}

// stopAll stops servers at once.
func stopAll(servers []*Server) error {
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = s.Stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
