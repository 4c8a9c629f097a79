package recompute

import (
	"context"
	"sync/atomic"
)

// nest is the chain of flights that a context belongs to, innermost first.
type nest struct {
	group  any
	key    string
	over   atomic.Bool // the flight has ended; what it left running may ask for its key
	parent *nest
}

type nestKey struct{}

func enclose(ctx context.Context, group any, key string) (context.Context, *nest) {
	parent, _ := ctx.Value(nestKey{}).(*nest)
	n := &nest{group: group, key: key, parent: parent}
	return context.WithValue(ctx, nestKey{}, n), n
}

// inside says whether ctx belongs to a flight of group for key that is under way: such a caller would wait for itself.
func inside(ctx context.Context, group any, key string) bool {
	n, _ := ctx.Value(nestKey{}).(*nest)
	for ; n != nil; n = n.parent {
		if n.group == group && n.key == key && !n.over.Load() {
			return true
		}
	}
	return false
}
