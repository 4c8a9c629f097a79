package load

import (
	"context"
	"sync"
	"time"
)

// Warm has each × len(urls) clients look whether the caches have the page. It brings nothing into a cache but opens all connections
// on the way there, so that in a burst that follows the requests really come at the same moment.
func (c *Client) Warm(ctx context.Context, urls []string, each int) error {
	return c.crowd(urls, each, func(url string) []Sample { return []Sample{c.Held(ctx, url)} }).Err
}

// Burst sends each × len(urls) requests at the same moment. seen is called after every answer, from many goroutines.
func (c *Client) Burst(ctx context.Context, urls []string, each int, seen func()) Report {
	return c.crowd(urls, each, func(url string) []Sample {
		s := c.Get(ctx, url)
		seen()
		return []Sample{s}
	})
}

// Steady keeps each × len(urls) clients asking, with a pause after every answer, for the time given.
func (c *Client) Steady(ctx context.Context, urls []string, each int, pause, lasting time.Duration, seen func()) Report {
	end := time.Now().Add(lasting)
	return c.crowd(urls, each, func(url string) []Sample {
		var samples []Sample
		for time.Now().Before(end) && ctx.Err() == nil {
			samples = append(samples, c.Get(ctx, url))
			seen()
			time.Sleep(pause)
		}
		return samples
	})
}

// crowd runs visit in each × len(urls) goroutines; all wait until the last one is ready.
func (c *Client) crowd(urls []string, each int, visit func(url string) []Sample) Report {
	var ready, done sync.WaitGroup
	var mu sync.Mutex
	var all []Sample
	start := make(chan struct{})
	ready.Add(each * len(urls))
	for range each {
		for _, url := range urls {
			done.Go(func() {
				ready.Done()
				<-start
				samples := visit(url)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, samples...)
			})
		}
	}
	ready.Wait()
	close(start)
	done.Wait()
	return newReport(all)
}
