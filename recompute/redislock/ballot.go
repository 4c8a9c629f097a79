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
	awaited  map[int]bool // the servers that have been asked and not counted yet
	yes      []vote       // it did what it was asked to
	no       []vote       // another has the lease, or it is no longer there
	unknown  []vote       // no answer, or an error
}

// vote is what one server says.
type vote struct {
	index int // of the server
	answer
	err error // nil, ErrHeld or ErrLost; any other says that it could not tell
}

// newBallot has room for a vote of each server, so that nobody needs to wait for the late. None is asked again before it has answered.
func (q *Quorum) newBallot() *ballot {
	return &ballot{of: len(q.members), need: q.need, votes: make(chan vote, len(q.members)), awaited: make(map[int]bool)}
}

// ask puts a question to a server, on a goroutine that its budget bounds. It goes on when the caller has left, so that what the server
// says late is not lost.
func (b *ballot) ask(ctx context.Context, index int, question func(context.Context) (answer, error)) {
	ctx = context.WithoutCancel(ctx)
	b.awaited[index] = true
	var uncounted *recompute.Tasks
	_ = uncounted.Go(func(context.Context) {
		v := vote{index: index, err: recompute.ErrGoexit} // stays so if a hook of the client panics
		defer func() { b.votes <- v }()
		v.answer, v.err = question(ctx)
	})
}

// count waits until the votes decide, all are in, or ctx ends: then it returns its error.
func (b *ballot) count(ctx context.Context) error {
	for len(b.awaited) > 0 && !b.won() && !b.lost() {
		select {
		case v := <-b.votes:
			b.add(v)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for {
		select {
		case v := <-b.votes: // it is in too
			b.add(v)
		default:
			return nil
		}
	}
}

func (b *ballot) add(v vote) {
	delete(b.awaited, v.index)
	switch {
	case v.err == nil:
		b.yes = append(b.yes, v)
	case errors.Is(v.err, recompute.ErrHeld), errors.Is(v.err, recompute.ErrLost):
		b.no = append(b.no, v)
	default:
		b.unknown = append(b.unknown, v)
	}
}

// won says whether a majority said yes, of servers that have forgotten nothing: one that has is no witness of numbers that were given. If
// as many have, there can be none that is asked for, and they have the clock.
func (b *ballot) won() bool {
	unsure := len(b.unsure())
	return max(unsure, len(b.yes)-unsure) >= b.need
}

// unsure are the votes of servers that say yes, but have forgotten numbers and were not told since.
func (b *ballot) unsure() (votes []vote) {
	for _, v := range b.yes {
		if v.unsure {
			votes = append(votes, v)
		}
	}
	return votes
}

func (b *ballot) lost() bool { return len(b.no)+len(b.unknown) > b.of-b.need }

// blind says whether so many could not tell that nobody can.
func (b *ballot) blind() bool { return len(b.unknown) > b.of-b.need }

// refused says whether so many say no that the others don't matter.
func (b *ballot) refused() bool { return len(b.no) > b.of-b.need }

// first says whether the first server that did not say that it can't tell said yes: of several who each have a part of the servers, one
// is told so. Until that server has answered, hope says that it may.
func (b *ballot) first() (is, hope bool) {
	for i := range b.of {
		by := func(v vote) bool { return v.index == i }
		switch {
		case slices.ContainsFunc(b.no, by):
			return false, false
		case slices.ContainsFunc(b.yes, by):
			return true, true
		case b.awaited[i]:
			return false, true
		}
	}
	return false, false
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

// verdict is why a lease was not granted; ended, if not nil, is that the caller left.
func (b *ballot) verdict(ended error) error {
	switch {
	case ended != nil:
		return fmt.Errorf("redislock: acquire: %w", ended)
	case b.blind() || len(b.no) == 0:
		return fmt.Errorf("redislock: acquire: %w", b.trouble())
	case b.left() < 0:
		return recompute.ErrHeld
	}
	return &recompute.HeldError{Left: max(b.left(), time.Millisecond)}
}

// trouble is an ErrQuorum with what the servers said that could not tell.
func (b *ballot) trouble() error {
	unsure := b.unsure()
	errs := []error{fmt.Errorf("%w: %d yes, %d no, of %d servers, and %d must agree", ErrQuorum, len(b.yes)-len(unsure), len(b.no), b.of, b.need)}
	for _, v := range b.unknown {
		errs = append(errs, fmt.Errorf("server %d: %w", v.index, v.err))
	}
	for _, v := range unsure {
		errs = append(errs, fmt.Errorf("server %d: %w", v.index, errForgot))
	}
	return errors.Join(errs...)
}
