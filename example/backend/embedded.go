package backend

import (
	"context"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

const tick = 5 * time.Millisecond

// embed starts miniredis. Its keys run out only when it is told that time has passed, so a goroutine keeps telling it.
func (b *Backend) embed() error {
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var clock sync.WaitGroup
	clock.Go(func() { advance(ctx, server) })
	b.Addr, b.Embedded = server.Addr(), true
	b.close = sync.OnceFunc(func() {
		cancel()
		clock.Wait()
		server.Close()
	})
	return nil
}

func advance(ctx context.Context, server *miniredis.Miniredis) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := time.Now()
		server.FastForward(now.Sub(last))
		last = now
	}
}
