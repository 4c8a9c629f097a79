package redislock

import (
	"context"
	"errors"
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
)

// The beginnings of replies that mean trouble. They can stand inside an error of a script.
var (
	cannotAnswer = []string{
		"LOADING ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "BUSY ", "NOAUTH ", "WRONGPASS ", "max number of clients",
	}
	takesNoWrites = []string{"READONLY ", "OOM ", "MISCONF ", "NOREPLICAS ", "NOPERM "}
)

func classify(ctx context.Context, err error) trouble {
	if err == nil {
		return none
	}
	reply := redis.Error(nil)
	switch {
	case !errors.As(err, &reply):
		if ctx.Err() != nil {
			return left
		}
		return unreachable
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
	case left:
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
