package redislock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

// reloader makes a cluster client ask for the cluster's layout when a node can't be reached. By itself go-redis would
// go on dialling a dead node for up to a minute (go-redis#3979).
type reloader struct {
	cluster *redis.ClusterClient // nil: not a cluster
	next    atomic.Int64         // not before, in Unix ns
}

func newReloader(rdb redis.UniversalClient) *reloader {
	cluster, _ := rdb.(*redis.ClusterClient)
	return &reloader{cluster: cluster}
}

const reloadPause = 250 * time.Millisecond

// hint says that a node did not answer.
func (r *reloader) hint() {
	if r.cluster == nil {
		return
	}
	now, next := time.Now(), r.next.Load()
	if now.UnixNano() < next || !r.next.CompareAndSwap(next, now.Add(reloadPause).UnixNano()) {
		return
	}
	var uncounted *recompute.Tasks
	_ = uncounted.Go(func(ctx context.Context) { r.cluster.ReloadState(ctx) })
}
