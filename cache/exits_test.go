package cache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// moody can't encode, or even panics, if told so.
type moody struct{ cache.Msgpack[string] }

func (m moody) Encode(v string) ([]byte, error) {
	switch v {
	case "unencodable":
		return nil, errors.New("no way")
	case "explosive":
		panic("in the codec")
	}
	return m.Msgpack.Encode(v)
}

func (m moody) Decode(data []byte) (string, error) {
	v, err := m.Msgpack.Decode(data)
	if v == "unreadable" {
		return "", errors.New("can't be read back")
	}
	return v, err
}

// Guarantee 9; cases 23 and 62: whatever way a computation ends, its lease ends with it.
func TestALeaseEndsOnEveryExit(t *testing.T) {
	const takes = 100 * time.Millisecond
	ends := func(v string, err error) cache.Compute[string] {
		return func(ctx context.Context) (string, error) { return v, errors.Join(err, pause(ctx, takes)) }
	}
	exits := []struct {
		says     string
		compute  cache.Compute[string]
		broken   string                                // step of the store that fails
		meddle   func(t *testing.T, f *fleet)          // while it computes
		timeout  time.Duration                         // of the caller
		negative time.Duration                         // Policy.Negative
		want     func(t *testing.T, r reply, f *fleet) // what its caller gets
	}{
		{says: "success", compute: ends("v", nil), want: gets("v")},
		{says: "error", compute: ends("", errDown), want: fails(errDown)},
		{says: "a panic at once", compute: func(context.Context) (string, error) { panic(errDown) }, want: fails(errDown)},
		{says: "a panic later", compute: func(ctx context.Context) (string, error) { _ = pause(ctx, takes); panic(errDown) }, want: fails(errDown)},
		{says: "a runtime panic", compute: func(context.Context) (string, error) { var nowhere *string; return *nowhere, nil }, want: panics},
		{says: "Goexit", compute: func(context.Context) (string, error) { runtime.Goexit(); return "", nil }, want: fails(recompute.ErrGoexit)},
		{says: "not found", compute: ends("", cache.ErrNotFound), want: fails(cache.ErrNotFound)},
		{says: "not found, remembered", compute: ends("", cache.ErrNotFound), negative: time.Minute, want: fails(cache.ErrNotFound)},
		{says: "a value that can't be encoded", compute: ends("unencodable", nil), want: gets("unencodable")},
		{says: "a value that can't be read back", compute: ends("unreadable", nil), want: gets("unreadable")},
		{says: "a codec that panics", compute: ends("explosive", nil), want: panics},
		{says: "a refused write", compute: ends("old", nil), want: gets("old"),
			meddle: func(t *testing.T, f *fleet) { require.NoError(t, f.replicas[1].Delete(t.Context(), "k")) }},
		{says: "Begin fails", compute: ends("v", nil), broken: "begin", want: gets("v")},
		{says: "Set fails", compute: ends("v", nil), broken: "set", want: gets("v")},
		{says: "Fail fails", compute: ends("", errDown), broken: "fail", want: fails(errDown)},
		{says: "the caller cancels", compute: ends("v", nil), want: fails(context.Canceled), timeout: -takes / 2},
		{says: "the caller's time is up", compute: ends("v", nil), want: fails(context.DeadlineExceeded), timeout: takes / 2},
		{says: "the caller's time is up, then an error", compute: ends("", errDown), want: fails(context.DeadlineExceeded), timeout: takes / 2},
		{says: "the limit", compute: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, want: fails(recompute.ErrLimit)},
		{says: "Close", compute: ends("v", nil), want: fails(cache.ErrClosed),
			meddle: func(t *testing.T, f *fleet) { require.NoError(t, f.replicas[0].Close()) }},
	}
	for _, exit := range exits {
		for _, late := range []bool{false, true} { // behind an answer
			t.Run(fmt.Sprint(exit.says, map[bool]string{true: ", behind an answer"}[late]), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := cache.NewMemory()
					store := &shim{Memory: m}
					policy := stale.Policy{Fresh: time.Minute, Negative: exit.negative}
					if late {
						policy.WhileRevalidate = time.Minute
					}
					o := cache.Options[string]{Policy: policy, Codec: moody{}, Limit: limit, Wait: time.Minute, Lease: 30 * time.Second}
					f := fleetOver(t, m, o, store, store)
					if late {
						f.store("k", "stale")
						time.Sleep(policy.Fresh)
					}
					store.before = func(_ context.Context, step string) error {
						if step == exit.broken {
							return errDown
						}
						return nil
					}
					ctx := t.Context()
					switch {
					case exit.timeout > 0:
						var cancel func()
						ctx, cancel = context.WithTimeout(ctx, exit.timeout)
						defer cancel()
					case exit.timeout < 0:
						var cancel func()
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(-exit.timeout, cancel)
					}
					var r reply
					var call sync.WaitGroup
					call.Go(func() { r = f.askFor(ctx, 0, "k", exit.compute) })
					if exit.meddle != nil {
						time.Sleep(takes / 2)
						exit.meddle(t, f)
					}
					call.Wait()
					if late {
						values(t, "stale", []reply{r})
						time.Sleep(limit)
					} else {
						exit.want(t, r, f)
					}
					if exit.timeout > 0 {
						time.Sleep(takes)
					}
					synctest.Wait()
					f.free("k")
					next := f.ask(1, "k") // and the next one need not wait for it
					if next.err != nil {
						require.ErrorIs(t, next.err, cache.ErrNotFound)
						require.Positive(t, exit.negative)
					}
					require.LessOrEqual(t, next.took, f.takes)
				})
			})
		}
	}
}

func gets(v string) func(*testing.T, reply, *fleet) {
	return func(t *testing.T, r reply, _ *fleet) { t.Helper(); values(t, v, []reply{r}) }
}

func fails(want error) func(*testing.T, reply, *fleet) {
	return func(t *testing.T, r reply, _ *fleet) {
		t.Helper()
		require.ErrorIs(t, r.err, want)
		require.Zero(t, r.Result)
	}
}

func panics(t *testing.T, r reply, _ *fleet) {
	t.Helper()
	var panicked *recompute.PanicError
	require.ErrorAs(t, r.err, &panicked)
	require.NotEmpty(t, panicked.Stack)
	require.NotNil(t, panicked.Value)
}

// Cases 3 and 5.
func TestAPanicReachesEveryCallerAndLeavesTheKeyUsable(t *testing.T) {
	exits := map[string]func(){"panic": func() { panic("at the disco") }, "Goexit": runtime.Goexit}
	for says, exit := range exits {
		t.Run(says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 1, cache.Options[string]{Policy: plain})
				gate := make(chan struct{})
				first := f.crowdFor(20, "k", func(context.Context) (string, error) {
					f.enter()
					<-gate
					exit()
					return "", nil
				})
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second) // one of them selects on its context
				defer cancel()
				var patient reply
				var call sync.WaitGroup
				call.Go(func() { patient = f.askFor(ctx, 0, "k", f.compute) })
				synctest.Wait()
				close(gate)
				call.Wait()
				for _, r := range append(first(), patient) {
					require.Error(t, r.err)
					require.Zero(t, r.took, "nobody hangs")
					if says == "panic" {
						require.ErrorContains(t, r.err, "at the disco")
						panics(t, r, f)
						continue
					}
					require.ErrorIs(t, r.err, recompute.ErrGoexit)
				}
				assert.EqualValues(t, 1, f.runs.Load())
				f.free("k")
				values(t, "v2", []reply{f.ask(0, "k")})
			})
		})
	}
}

// A store or a hook may end its goroutine too (t.FailNow does): the key stays usable.
func TestAStoreThatEndsItsGoroutineLeavesTheKeyUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := cache.NewMemory()
		var reads atomic.Int64
		store := &shim{Memory: m, before: func(_ context.Context, step string) error {
			time.Sleep(time.Millisecond)
			if step == "get" && reads.Add(1) <= 2 {
				runtime.Goexit()
			}
			return nil
		}}
		f := fleetOver(t, m, cache.Options[string]{Policy: plain}, store)
		for _, r := range f.crowd(20, "k") {
			if r.err != nil {
				require.ErrorIs(t, r.err, recompute.ErrGoexit)
			}
			require.Less(t, r.took, time.Second)
		}
		values(t, "v1", f.crowd(20, "k"))
	})
}

// A panic is no answer, whatever it is given: "not found" would be remembered.
func TestAPanicWithNotFoundIsAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, cache.Options[string]{Policy: stale.Policy{Fresh: time.Minute, Negative: time.Minute}})
		for range 2 {
			r := f.askFor(t.Context(), 0, "k", func(context.Context) (string, error) { f.enter(); panic(cache.ErrNotFound) })
			panics(t, r, f)
		}
		assert.EqualValues(t, 2, f.runs.Load(), "and not stored")
		values(t, "v3", []reply{f.ask(0, "k")})
	})
}

// The errors that the library gives to itself mean nothing in the mouth of a computation.
func TestAComputationMayReturnAnyError(t *testing.T) {
	for _, err := range []error{
		recompute.ErrLost, recompute.ErrAbandoned, recompute.ErrHeld, recompute.ErrBusy, recompute.ErrLimit,
		recompute.ErrRecursive, recompute.ErrGoexit, recompute.ErrClosed, cache.ErrFenced, cache.ErrTooBig,
		context.Canceled, context.DeadlineExceeded, &cache.FailedError{Text: "elsewhere"}, &recompute.PanicError{Value: 1},
	} {
		t.Run(err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 1, cache.Options[string]{Policy: plain})
				gate := make(chan struct{})
				replies := f.crowdFor(10, "k", func(context.Context) (string, error) {
					if f.enter() > 100 {
						return "", errors.New("again and again")
					}
					<-gate
					return "", fmt.Errorf("a job of ours: %w", err)
				})
				synctest.Wait()
				close(gate)
				for _, r := range replies() {
					require.ErrorIs(t, r.err, err)
					require.ErrorContains(t, r.err, "a job of ours")
				}
				assert.EqualValues(t, 1, f.runs.Load())
			})
		})
	}
}
