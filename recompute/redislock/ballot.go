package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// ballot collects what the servers of a quorum say to one question, until it is decided.
type ballot struct {
	of, need int
	votes    chan vote
	awaited  int    // asked, and not counted yet
	yes      []vote // it did what it was asked to
	no       []vote // another has the lease, or it is no longer there
	unknown  []vote // no answer, or an error
}

// vote is what one server says.
type vote struct {
	index int // of the server
	answer
	err error // nil, ErrHeld or ErrLost; any other says that it could not tell
}

// newBallot has room for a vote of each server, so that nobody needs to wait for the late. None is asked again before it has answered.
func (q *Quorum) newBallot() *ballot {
	return &ballot{of: len(q.members), need: q.need, votes: make(chan vote, len(q.members))}
}

// ask puts a question to a server, on a goroutine that its budget bounds. It goes on when the caller has left, so that what the server
// says late is not lost.
func (b *ballot) ask(ctx context.Context, index int, question func(context.Context) (answer, error)) {
	ctx = context.WithoutCancel(ctx)
	b.awaited++
	var uncounted *recompute.Tasks
	_ = uncounted.Go(func(context.Context) {
		v := vote{index: index, err: recompute.ErrGoexit} // stays so if a hook of the client panics
		defer func() { b.votes <- v }()
		v.answer, v.err = question(ctx)
	})
}

// count waits until the votes decide, all are in, or ctx ends: then it returns its error.
func (b *ballot) count(ctx context.Context) error {
	for b.awaited > 0 && !b.won() && !b.lost() {
		select {
		case v := <-b.votes:
			b.awaited--
			b.add(v)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (b *ballot) add(v vote) {
	switch {
	case v.err == nil:
		b.yes = append(b.yes, v)
	case errors.Is(v.err, recompute.ErrHeld), errors.Is(v.err, recompute.ErrLost):
		b.no = append(b.no, v)
	default:
		b.unknown = append(b.unknown, v)
	}
}

func (b *ballot) won() bool  { return len(b.yes) >= b.need }
func (b *ballot) lost() bool { return len(b.no)+len(b.unknown) > b.of-b.need }

// blind says whether so many could not tell that nobody can.
func (b *ballot) blind() bool { return len(b.unknown) > b.of-b.need }

// refused says whether so many say no that the others don't matter.
func (b *ballot) refused() bool { return len(b.no) > b.of-b.need }

// first says whether the first server that answered said yes: of several who each have a part of the servers, one can say so.
func (b *ballot) first() bool {
	by := func(x, y vote) int { return x.index - y.index }
	return len(b.yes) > 0 && (len(b.no) == 0 || slices.MinFunc(b.yes, by).index < slices.MinFunc(b.no, by).index)
}

// left is when enough servers will be free for a quorum, as far as is known.
func (b *ballot) left() time.Duration {
	var lefts []time.Duration
	for _, v := range b.no {
		lefts = append(lefts, v.left)
	}
	slices.Sort(lefts)
	missing := min(max(b.need-len(b.yes), 1), len(lefts))
	return lefts[missing-1]
}

// trouble is an ErrQuorum with what the servers said that could not tell.
func (b *ballot) trouble() error {
	errs := []error{fmt.Errorf("%w: %d of %d, and %d are needed", ErrQuorum, b.of-len(b.unknown)-b.awaited, b.of, b.need)}
	for _, v := range b.unknown {
		errs = append(errs, fmt.Errorf("server %d: %w", v.index, v.err))
	}
	return errors.Join(errs...)
}
