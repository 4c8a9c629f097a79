package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
)

// quorumLease is a lease on most servers of a quorum.
type quorumLease struct {
	quorum *Quorum
	since  time.Time // before it was asked for
	ttl    time.Duration
	shares []*share // one for each server

	mu    sync.Mutex
	fence int64 // 0: it is not known yet
	over  bool  // given back: what is granted from now on is given back too
}

// share is the lease on one server.
type share struct {
	*lease
	member *member
	has    bool  // guarded by the mu of the whole: granted, and not known to be lost
	number int64 // guarded by it too: that the server gave
}

func (q *Quorum) lease(key string, ttl time.Duration) *quorumLease {
	h := &quorumLease{quorum: q, since: time.Now(), ttl: ttl}
	token := rand.Text()
	for i, m := range q.members {
		// The token differs, so that a server that is reached in two ways grants to one and refuses the other.
		h.shares = append(h.shares, &share{lease: m.lease(key, token+"."+strconv.Itoa(i), ttl), member: m})
	}
	return h
}

// Fence returns the number of this grant.
func (h *quorumLease) Fence() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fence
}

// insist are the pauses of one who has the first server before the others, which may be about to be given back, are asked again.
var insist = recompute.Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond, Jitter: 0.5}

const (
	insistences = 10 // how many times longer than for the answers it goes on: giving back takes as long as they do
	hopes       = 5  // and how many times longer it waits for the answer of the first server when the others have refused
)

// elect asks all servers for the lease.
func (h *quorumLease) elect(ctx context.Context) error {
	b, began := h.quorum.newBallot(), time.Now()
	for i := range h.shares {
		b.ask(ctx, i, h.vote(i))
	}
	err := b.count(ctx)
	took := time.Since(began)
	for pause := range insist.Pauses() {
		first, hope := b.first()
		patience := 5*time.Millisecond + hopes*took
		if first {
			patience = 50*time.Millisecond + insistences*took
		}
		late := time.Since(began)+pause > took+min(patience, h.quorum.budget)
		if err != nil || b.won() || b.blind() || !hope || late || !recompute.Pause(ctx, pause) {
			break
		}
		if first {
			h.again(ctx, b)
		}
		err = b.count(ctx)
	}
	switch {
	case b.won():
		return nil
	case err == nil:
		err = ctx.Err()
	}
	return b.verdict(err)
}

// again asks those who refused.
func (h *quorumLease) again(ctx context.Context, b *ballot) {
	refused := b.no
	b.no = nil
	for _, v := range refused {
		b.ask(ctx, v.index, h.vote(v.index))
	}
}

// vote asks one server for its share.
func (h *quorumLease) vote(i int) func(context.Context) (answer, error) {
	s := h.shares[i]
	return func(ctx context.Context) (answer, error) {
		got, err := s.member.vote(ctx, s.lease)
		switch {
		case errors.Is(err, ErrOpen) || errors.Is(err, errNoVote): // nothing was sent, or nothing granted
			return got, err
		case err != nil:
			s.silent().takeBack()
			return got, err
		case !got.granted:
			return got, recompute.ErrHeld
		case !h.keep(s, got.fence):
			s.giveBack()
		case got.unsure:
			h.remind(ctx, s)
		}
		return got, nil
	}
}

func (h *quorumLease) keep(s *share, number int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	s.has, s.number = true, number
	return true
}

func (h *quorumLease) drop(s *share) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.has = false
}

// held returns the indexes of the shares that are ours.
func (h *quorumLease) held() (indexes []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, s := range h.shares {
		if s.has {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// decide makes the highest number of the shares that are ours the lease's.
func (h *quorumLease) decide() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.shares {
		if s.has {
			h.fence = max(h.fence, s.number)
		}
	}
	return h.fence
}

// raise makes the highest number of a quorum the lease's, and has a quorum know it. Two quorums have a server in common, so the next
// lease's is higher: the highest number alone would not be, were it known only to a server that the next can't reach.
func (h *quorumLease) raise(ctx context.Context) error {
	fence := h.decide()
	b, err := h.each(ctx, func(ctx context.Context, s *share) error { return h.tell(ctx, s, fence) })
	if err != nil {
		return fmt.Errorf("redislock: acquire: %w", err)
	}
	switch {
	case b.won():
		return nil
	case b.refused():
		return fmt.Errorf("redislock: acquire: it ended before it was granted: %w", recompute.ErrLost)
	}
	return fmt.Errorf("redislock: acquire: raise: %w", b.trouble())
}

// remind tells a server that answered after the number was decided, and has forgotten those before. If it is not told, the next lease will.
func (h *quorumLease) remind(ctx context.Context, s *share) {
	if fence := h.Fence(); fence > 0 {
		_ = h.tell(ctx, s, fence)
	}
}

// tell has one server know the number. One that had lost its data is without a vote for longer than a lease lasts, so what it forgot was
// given before this lease was asked for, and is lower; were the lease over, that could be otherwise.
func (h *quorumLease) tell(ctx context.Context, s *share, fence int64) error {
	if time.Since(h.since) >= h.ttl {
		return recompute.ErrLost
	}
	return s.member.raise(ctx, s.lease, fence)
}

// Extend makes the lease last ttl from now, on most servers. The share of a server that did not answer in time may last longer too.
func (h *quorumLease) Extend(ctx context.Context, ttl time.Duration) error {
	if err := h.quorum.checkTTL(ttl); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if h.ended() {
		return recompute.ErrLost
	}
	since := time.Now()
	b, err := h.each(ctx, func(ctx context.Context, s *share) error {
		err := s.Extend(ctx, ttl)
		if errors.Is(err, recompute.ErrLost) {
			h.drop(s)
		}
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("redislock: extend: %w", err)
	case h.ended() || b.refused(): // released meanwhile, or lost
		return recompute.ErrLost
	case !b.won():
		return fmt.Errorf("redislock: extend: %w", b.trouble())
	}
	return h.quorum.timely(since, ttl)
}

// Release ends the lease on all servers, and returns when most have answered. Otherwise it is as that of one server's lease.
func (h *quorumLease) Release(ctx context.Context) error {
	h.end()
	b, _ := h.each(context.WithoutCancel(ctx), func(ctx context.Context, s *share) error {
		err := s.Release(ctx)
		if err == nil || errors.Is(err, recompute.ErrLost) {
			h.drop(s)
		}
		return err
	})
	switch {
	case b.won():
		return nil
	case b.refused():
		return recompute.ErrLost
	}
	return fmt.Errorf("redislock: release: %w", b.trouble())
}

// each asks the servers whose shares are ours. The others say no without being asked.
func (h *quorumLease) each(ctx context.Context, question func(context.Context, *share) error) (*ballot, error) {
	b := h.quorum.newBallot()
	ours := h.held()
	for range len(h.shares) - len(ours) {
		b.add(vote{err: recompute.ErrLost})
	}
	for _, i := range ours {
		s := h.shares[i]
		b.ask(ctx, i, func(ctx context.Context) (answer, error) { return answer{}, question(ctx, s) })
	}
	return b, b.count(ctx)
}

func (h *quorumLease) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
}

func (h *quorumLease) ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// giveBack ends what was granted of a lease that was not, and what will be.
func (h *quorumLease) giveBack() {
	h.end()
	for _, i := range h.held() {
		h.shares[i].giveBack()
	}
}

func (s *share) giveBack() {
	var uncounted *recompute.Tasks
	_ = uncounted.Go(func(ctx context.Context) { _ = s.silent().Release(ctx) })
}

// silent is the lease without announcements. What was only a part of a lease is no reason to ask again: those who wait would get such
// parts again and again, and wake each other.
func (s *share) silent() *lease {
	l := *s.lease
	l.quiet = true
	return &l
}
