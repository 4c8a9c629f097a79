package redislock

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/redis/go-redis/v9"
)

var (
	//go:embed member.lua
	memberLua     string
	votingScript  = redis.NewScript(memberLua + acquireLua)
	lookingScript = redis.NewScript(memberLua + "return 1")
	//go:embed raise.lua
	raiseLua    string
	raiseScript = redis.NewScript(raiseLua)
	//go:embed found.lua
	foundLua    string
	foundScript = redis.NewScript(foundLua)
)

// errNoVote says that a server may have forgotten leases.
var errNoVote = errors.New("redislock: the server is new, has restarted or lost its data, and has no vote for a while")

// noVote is an errNoVote that says more.
type noVote struct {
	age, longest time.Duration
	marker       string
}

func (e *noVote) Error() string        { return fmt.Sprintf("%v: %v", errNoVote, e.longest-e.age) }
func (e *noVote) Is(target error) bool { return target == errNoVote }

// member is one server of a quorum, with steps and breakers of its own.
type member struct {
	*Locker
	marker  string // the Redis key that says since when the server has had its memory
	longest time.Duration
}

func newMember(c redis.UniversalClient, o QuorumOptions, waiters *recompute.Waiters) *member {
	space := Space(cmp.Or(o.Prefix, "bellwether"))
	l := On(NewSteps(c, StepOptions{Budget: o.Budget}), space, cmp.Or(o.Channel, string(space)+":leases"))
	l.role, l.fenced, l.ear.waiters = leases, true, waiters
	return &member{Locker: l, marker: string(space) + ":member", longest: cmp.Or(o.Longest, defaultLongest)}
}

// vote asks for the lease on this server.
func (m *member) vote(ctx context.Context, h *lease) (answer, error) {
	cmd := m.steps.Write(ctx, votingScript, []string{h.lock, h.mark, h.fence, m.marker},
		h.token, h.ttl.Milliseconds(), (h.ttl + fenceMemory).Milliseconds(), "", m.longest.Milliseconds()) // "": nobody queues
	if err := m.doubt(cmd); err != nil {
		return answer{left: -1}, err
	}
	return read(cmd.Val()), nil
}

// look asks only whether the server has a vote.
func (m *member) look(ctx context.Context) error {
	return m.doubt(m.steps.Write(ctx, lookingScript, []string{m.marker}, m.longest.Milliseconds()))
}

// doubt is the reason for which an answer is no vote.
func (m *member) doubt(cmd *redis.Cmd) error {
	if got, ok := cmd.Val().([]any); ok && len(got) == 3 {
		age, _ := got[1].(int64)
		marker, _ := got[2].(string)
		return &noVote{age: time.Duration(age) * time.Millisecond, longest: m.longest, marker: marker}
	}
	return cmd.Err()
}

// raise makes the next number that the server gives higher than fence, if the lease is still there.
func (m *member) raise(ctx context.Context, h *lease, fence int64) error {
	got, err := m.steps.Write(ctx, raiseScript, []string{h.lock, h.fence}, h.token, fence, (h.ttl + fenceMemory).Milliseconds()).Int()
	if err == nil && got == 0 {
		return recompute.ErrLost
	}
	return err
}

// found gives the server a vote, if it is still the one that said it has none.
func (m *member) found(ctx context.Context, seen *noVote) error {
	got, err := m.steps.Write(ctx, foundScript, []string{m.marker}, seen.marker).Int()
	if err == nil && got == 0 {
		return errNoVote
	}
	return err
}
