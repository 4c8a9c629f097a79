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

// pass is the leave of one breaker to take a step. The zero pass is of none.
type pass struct {
	breaker *breaker
	done    func(error)
}

// allow says whether a step may be tried. If so, the pass must be told what became of it.
func (b *breaker) allow() (pass, error) {
	done, err := b.circuit.Allow()
	if err != nil {
		return pass{}, fmt.Errorf("%w: %w", ErrOpen, b.err())
	}
	return pass{b, done}, nil
}

func (p pass) tell(err error) {
	if p.breaker == nil {
		return
	}
	if err != nil && !errors.Is(err, errNeither) {
		p.breaker.last.Store(&err)
	}
	p.done(err)
}

// passes are the leave of the breakers of a step.
type passes struct{ link, writes pass }

// allow asks the breakers of a step; writes is nil for one that writes nothing.
func allow(link, writes *breaker) (p passes, err error) {
	if p.link, err = link.allow(); err != nil || writes == nil {
		return p, err
	}
	if p.writes, err = writes.allow(); err != nil {
		p.link.tell(errNeither)
	}
	return p, err
}

// tell says what became of the step.
func (p passes) tell(t trouble, err error) {
	p.link.tell(t.forLink(err))
	p.writes.tell(t.forWrites(err))
}
