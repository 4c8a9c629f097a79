package redislock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

const (
	// together is how far apart servers may have got their markers that are taken for a new set. A rolling restart takes longer.
	together = time.Second
	// foundings is how often it is tried; others may be at it.
	foundings = 5
)

// found gives all servers a vote if all are new, and says whether enough have one.
func (q *Quorum) found(ctx context.Context) bool {
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return false
	}
	tries := 0
	for pause := range retries.Pauses() {
		b, err := q.look(ctx)
		if err != nil || b.won() {
			return err == nil
		}
		if tries++; tries > foundings || len(b.awaited) > 0 || !young(b) {
			return false
		}
		if len(b.yes) == 0 && q.bless(ctx, b.unknown) {
			return true
		}
		if !recompute.Pause(ctx, pause) {
			return false
		}
	}
	return false
}

// look asks all servers whether they have a vote, and unless enough have one waits for all of them.
func (q *Quorum) look(ctx context.Context) (*ballot, error) {
	b := q.newBallot()
	b.of = b.need - 1 + len(q.members) // so that it can't be lost before the last vote
	for i, m := range q.members {
		b.ask(ctx, i, func(ctx context.Context) (answer, error) { return answer{}, m.look(ctx) })
	}
	return b, b.count(ctx)
}

// young says whether all servers without a vote got their markers at about the same time: with no others, the set is new; with others
// and only just now, somebody is founding it.
func young(b *ballot) bool {
	var ages []time.Duration
	for _, v := range b.unknown {
		no, ok := errors.AsType[*noVote](v.err)
		if !ok {
			return false
		}
		ages = append(ages, no.age)
	}
	if len(b.yes) > 0 {
		return slices.Max(ages) < together
	}
	return slices.Max(ages)-slices.Min(ages) < together
}

// bless gives a vote to all servers that said they have none.
func (q *Quorum) bless(ctx context.Context, without []vote) bool {
	b := q.newBallot()
	b.need = len(without)
	for _, v := range without {
		seen, _ := errors.AsType[*noVote](v.err)
		b.ask(ctx, v.index, func(ctx context.Context) (answer, error) { return answer{}, q.members[v.index].found(ctx, seen) })
	}
	return b.count(ctx) == nil && b.won()
}
