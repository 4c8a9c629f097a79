package traffic

import (
	"context"
	"errors"
	"sync"

	"github.com/bellwether-cache/bellwether/cache"
)

// Store is a store with all that a cache can use of it.
type Store interface {
	cache.Store
	cache.Elector
	cache.Prompter
	cache.Watcher
}

// Witness is a store that remembers which results the other one has accepted or refused.
type Witness struct {
	Store
	verdicts sync.Map // by verdict
}

type verdict struct {
	name  string
	fence cache.Fence
}

// Set writes, and remembers whether it was told that it did, or did not.
func (w *Witness) Set(ctx context.Context, key cache.Key, write cache.Write) error {
	err := w.Store.Set(ctx, key, write)
	if err == nil || errors.Is(err, cache.ErrFenced) {
		w.verdicts.Store(verdict{key.Name, write.Fence}, true)
	}
	return err
}

func (w *Witness) judged(name string, fence cache.Fence) bool {
	_, ok := w.verdicts.Load(verdict{name, fence})
	return ok
}
