package traffic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/internal/linear"
)

const (
	schema = "00000000000000a1"
	long   = time.Minute // nothing runs out while the clients work
)

// Stores has clients of each store begin, write, delete and read the same names, and returns what happened to each.
// Nothing may have been done to the names before.
func Stores(ctx context.Context, o Options, stores ...cache.Store) *linear.History[linear.Register] {
	o = o.complete()
	s := &storeClients{o: o, history: new(linear.History[linear.Register])}
	o.run(len(stores), func(i int, name string, dice *rand.Rand) {
		key := cache.Key{Name: name, Schema: schema}
		switch n := dice.IntN(10); {
		case n < 4:
			s.get(ctx, stores[i], key)
		case n < 5:
			s.delete(ctx, stores[i], name)
		default:
			s.write(ctx, stores[i], key, dice)
		}
	})
	return s.history
}

type storeClients struct {
	o       Options
	history *linear.History[linear.Register]
	values  atomic.Int64
	seen    atomic.Int64 // a number that somebody has seen
}

func (s *storeClients) get(ctx context.Context, store cache.Store, key cache.Key) {
	call := s.history.Now()
	e, err := store.Get(ctx, key)
	if err == nil || errors.Is(err, cache.ErrNotFound) {
		s.history.Did(key.Name, call, linear.Found{Value: string(e.Data), Fence: int64(e.Fence)})
		s.seen.Store(int64(e.Fence))
	}
}

func (s *storeClients) delete(ctx context.Context, store cache.Store, name string) {
	call := s.history.Now()
	err := store.Delete(ctx, 0, name)
	switch {
	case err == nil:
		s.history.Did(name, call, linear.Erased{})
	case s.o.Untried(err):
		return
	}
	if err != nil || s.o.Resent {
		s.history.Tried(name, call, linear.Erased{})
	}
}

// write begins, waits and writes.
func (s *storeClients) write(ctx context.Context, store cache.Store, key cache.Key, dice *rand.Rand) {
	call, seen := s.history.Now(), s.seen.Load()
	fence, e, err := store.Begin(ctx, key, cache.Fence(seen), long)
	if err != nil {
		return
	}
	s.history.Did(key.Name, call, linear.Begun{Fence: int64(fence), Seen: seen, Newer: string(e.Data), Of: int64(e.Fence)})
	time.Sleep(upTo(s.o.Takes, dice))

	w := cache.Write{Fence: fence, TTL: long, Sole: dice.IntN(5) == 0}
	if dice.IntN(10) > 0 {
		w.Data = fmt.Append(nil, "v", s.values.Add(1))
	}
	call = s.history.Now()
	err = store.Set(ctx, key, w)
	refused := errors.Is(err, cache.ErrFenced)
	switch {
	case err == nil:
		s.history.Did(key.Name, call, linear.Written{Fence: int64(fence), Value: string(w.Data)})
	case refused:
		s.history.Did(key.Name, call, linear.Refused{Fence: int64(fence)})
	}
	if refused && s.o.Resent || err != nil && !refused && !s.o.Untried(err) {
		s.history.Tried(key.Name, call, linear.Written{Fence: int64(fence), Value: string(w.Data)})
	}
}
