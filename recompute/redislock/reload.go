package redislock

import (
	"context"
	"errors"
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
	r := &reloader{cluster: cluster}
	if cluster != nil {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(impatient{r}) })
	}
	return r
}

const (
	reloadPause = 250 * time.Millisecond
	// trouble lasts this long after the last hint of it.
	troubled = 10 * time.Second
	// layoutBudget is how long one node may take to tell the layout while there is trouble.
	layoutBudget = 500 * time.Millisecond
)

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

// troubled says whether a node has not answered lately.
func (r *reloader) troubled() bool {
	return time.Now().UnixNano() < r.next.Load()+int64(troubled-reloadPause)
}

// impatient is a hook of a cluster's nodes. go-redis asks any node for the layout, be it the one that is silent, and
// would wait for it for 5 s and more before it asks the next.
type impatient struct{ *reloader }

// DialHook changes nothing.
func (impatient) DialHook(next redis.DialHook) redis.DialHook {
	return next
}

// ProcessPipelineHook changes nothing.
func (impatient) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook bounds the question for the layout. The command of a node that is not waited for must not be touched
// any more by it, so another is sent in its place.
func (h impatient) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		asked, ok := cmd.(*redis.ClusterSlotsCmd)
		if !ok || !h.troubled() {
			return next(ctx, cmd)
		}
		bounded, cancel := context.WithTimeoutCause(ctx, layoutBudget, errSilent)
		defer cancel()
		slots, err := recompute.Call(bounded, nil, func(ctx context.Context) ([]redis.ClusterSlot, error) {
			sent := redis.NewClusterSlotsCmd(ctx, cmd.Args()...)
			err := next(ctx, sent)
			return sent.Val(), err
		})
		if err != nil {
			asked.SetErr(err)
			return err
		}
		asked.SetVal(slots)
		return nil
	}
}

var errSilent = errors.New("redislock: a node does not tell the cluster's layout")
