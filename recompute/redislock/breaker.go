package redislock

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// ErrOpen says that a step was not tried, because Redis has failed lately.
var ErrOpen = errors.New("redislock: Redis has failed lately and is not asked for a moment")

const (
	failuresToOpen = 3
	openFor        = 500 * time.Millisecond // then one step is let through as a probe
)

// breaker is a circuit breaker (gobreaker) with the error that opened it.
type breaker struct {
	circuit *gobreaker.TwoStepCircuitBreaker[struct{}]
	last    atomic.Pointer[error]
}

func newBreaker(name string, tell func(state string, err error)) *breaker {
	b := new(breaker)
	b.circuit = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:        name,
		MaxRequests: 1,
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresToOpen },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNeither) },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			switch {
			case tell == nil:
			case to == gobreaker.StateClosed:
				tell(name+" "+to.String(), nil)
			default:
				tell(name+" "+to.String(), b.err())
			}
		},
	})
	return b
}

// errNeither ends a step that says nothing about Redis: its caller left.
var errNeither = errors.New("neither success nor failure")

func (b *breaker) err() error {
	if p := b.last.Load(); p != nil {
		return *p
	}
	return nil
}

// healthy says whether the breaker is closed and has counted no failure lately.
func (b *breaker) healthy() bool {
	return b.circuit.State() == gobreaker.StateClosed && b.circuit.Counts().ConsecutiveFailures == 0
}

// allow says whether a step may be tried, and returns how to tell what became of it.
func (b *breaker) allow() (tell func(error), err error) {
	done, err := b.circuit.Allow()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOpen, b.err())
	}
	return func(err error) {
		if err != nil && !errors.Is(err, errNeither) {
			b.last.Store(&err)
		}
		done(err)
	}, nil
}

// allow asks the breakers of a step, and returns how to tell them what became of it.
func allow(link, writes *breaker) (tell func(trouble, error), err error) {
	viaLink, err := link.allow()
	if err != nil {
		return nil, err
	}
	if writes == nil {
		return func(t trouble, err error) { viaLink(t.forLink(err)) }, nil
	}
	viaWrites, err := writes.allow()
	if err != nil {
		viaLink(errNeither)
		return nil, err
	}
	return func(t trouble, err error) {
		viaLink(t.forLink(err))
		viaWrites(t.forWrites(err))
	}, nil
}
