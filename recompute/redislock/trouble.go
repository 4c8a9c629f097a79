package redislock

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// trouble is what an error says about the server.
type trouble uint8

const (
	none        trouble = iota // it answered; "no such key" and a script's own error are answers
	left                       // the caller left before there was an answer
	unreachable                // it did not answer, or said that it can't answer anything now
	refusing                   // it answers, but takes no writes
	unserved                   // it answers, but not for this key: its slot is being moved, or no server has it
)

// Unreachable says whether an error of a step means that nobody can reach the server, as far as can be told from here:
// the connection is refused, there is no answer within the budget, or the server says that it can't answer anybody. A
// connection that broke does not mean that, nor does a refused password.
func Unreachable(err error) bool {
	dial, timeout, reply := (*net.OpError)(nil), net.Error(nil), redis.Error(nil)
	switch {
	case errors.As(err, &reply):
		return containsAny(err.Error(), servesNobody)
	case errors.Is(err, redis.ErrPoolTimeout):
		return false
	case errors.Is(err, ErrBudget), errors.As(err, &dial) && dial.Op == "dial":
		return true
	}
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Refused says whether an error of a step means that the server answers but takes no writes.
func Refused(err error) bool {
	return err != nil && classify(context.Background(), err) == refusing
}

// The beginnings of replies that mean trouble. They can stand inside an error of a script.
var (
	servesNobody  = []string{"LOADING ", "MASTERDOWN ", "CLUSTERDOWN ", "BUSY "}
	servesNotThis = []string{"TRYAGAIN ", "CLUSTERDOWN Hash slot not served"}
	cannotAnswer  = append([]string{"NOAUTH ", "WRONGPASS ", "max number of clients"}, servesNobody...)
	takesNoWrites = []string{"READONLY ", "OOM ", "MISCONF ", "NOREPLICAS ", "NOPERM "}
)

func classify(ctx context.Context, err error) trouble {
	if err == nil {
		return none
	}
	reply := redis.Error(nil)
	switch {
	case errors.Is(err, ErrReplicas):
		return refusing
	case !errors.As(err, &reply):
		if ctx.Err() != nil {
			return left
		}
		return unreachable
	case containsAny(err.Error(), servesNotThis):
		return unserved
	case containsAny(err.Error(), cannotAnswer):
		return unreachable
	case containsAny(err.Error(), takesNoWrites):
		return refusing
	}
	return none
}

func containsAny(s string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// forLink is what the breaker of the link is told.
func (t trouble) forLink(err error) error {
	switch t {
	case unreachable:
		return err
	case left, unserved:
		return errNeither
	}
	return nil
}

// forWrites is what the breaker of the writes is told. An unreachable server says nothing about writes.
func (t trouble) forWrites(err error) error {
	switch t {
	case refusing:
		return err
	case none:
		return nil
	}
	return errNeither
}
