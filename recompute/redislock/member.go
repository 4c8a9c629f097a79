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
	memberLua    string
	votingScript = redis.NewScript(memberLua + "local function acquire()\n" + acquireLua + "end\n" + `
local got = acquire()
if got == 1 then return {1, number, sure and 1 or 0} end
return got`)
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

// errForgot says that a server has a vote, but may have forgotten numbers.
var errForgot = errors.New("redislock: the server had lost its data, and does not know yet what numbers were given before")

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
	marker  string // the Redis key that says since when the server has had its memory, and the highest number that it was told
	longest time.Duration
}

func newMember(c redis.UniversalClient, o QuorumOptions, waiters *recompute.Waiters, released func(name string) bool) *member {
	space := Space(cmp.Or(o.Prefix, "bellwether"))
	l := On(NewSteps(c, StepOptions{Budget: o.Budget}), space, cmp.Or(o.Channel, string(space)+":leases"))
	l.role, l.mode.voter = leases, true
	l.ear.waiters, l.ear.wake = waiters, released
	return &member{Locker: l, marker: string(space) + ":member", longest: cmp.Or(o.Longest, defaultLongest)}
}

// vote asks for the lease on this server.
func (m *member) vote(ctx context.Context, h *lease) (answer, error) {
	cmd := m.steps.Write(ctx, votingScript, []string{h.lock, h.mark, m.marker},
		h.token, h.ttl.Milliseconds(), "", "", m.longest.Milliseconds()) // "": the number is the member's, and nobody queues
	if err := m.doubt(cmd); err != nil {
		return answer{left: -1}, err
	}
	if got, ok := cmd.Val().([]any); ok && len(got) == 3 {
		number, _ := got[1].(int64)
		return answer{granted: true, fence: number, unsure: got[2] == int64(0)}, nil
	}
	return read(cmd.Val()), nil
}

// look asks only whether the server has a vote.
func (m *member) look(ctx context.Context) error {
	return m.doubt(m.steps.Write(ctx, lookingScript, []string{m.marker}, m.longest.Milliseconds()))
}

// doubt is the reason for which an answer is no vote.
func (m *member) doubt(cmd *redis.Cmd) error {
	if got, ok := cmd.Val().([]any); ok && len(got) == 3 && got[0] == int64(0) {
		age, _ := got[1].(int64)
		marker, _ := got[2].(string)
		return &noVote{age: time.Duration(age) * time.Millisecond, longest: m.longest, marker: marker}
	}
	return m.mode.explain(cmd.Err())
}

// raise makes the next number that the server gives higher than fence, if the lease is still there. A server that had forgotten its
// numbers is sure of them again, as fence is higher than all of those.
func (m *member) raise(ctx context.Context, h *lease, fence int64) error {
	got, err := m.steps.Write(ctx, raiseScript, []string{h.lock, m.marker}, h.token, fence).Int()
	if err == nil && got == 0 {
		return recompute.ErrLost
	}
	return m.mode.explain(err)
}

// found gives the server a vote, if it is still the one that said it has none.
func (m *member) found(ctx context.Context, seen *noVote) error {
	got, err := m.steps.Write(ctx, foundScript, []string{m.marker}, seen.marker).Int()
	if err == nil && got == 0 {
		return errNoVote
	}
	return m.mode.explain(err)
}
