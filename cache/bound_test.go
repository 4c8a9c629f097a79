package cache_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/bellwether-cache/bellwether/cache"
	"github.com/bellwether-cache/bellwether/recompute"
	"github.com/bellwether-cache/bellwether/stale"
)

// step is something that happens to a key.
type step struct {
	what    string        // "ask", "fail", "absent", "set", "delete", "lock", "break", "mend"
	replica int           // where
	takes   time.Duration // a computation
	then    time.Duration // time passes
}

func (s step) String() string {
	return fmt.Sprintf("%s at %d, takes %v, then %v", s.what, s.replica, s.takes, s.then)
}

func policies() *rapid.Generator[stale.Policy] {
	window := func(least time.Duration) *rapid.Generator[time.Duration] {
		return rapid.SampledFrom([]time.Duration{least, time.Second, 7 * time.Second, time.Minute})
	}
	return rapid.Custom(func(t *rapid.T) stale.Policy {
		return stale.Policy{
			Fresh:           window(time.Second).Draw(t, "Fresh"),
			WhileRevalidate: window(0).Draw(t, "WhileRevalidate"),
			IfError:         window(0).Draw(t, "IfError"),
			Jitter:          rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "Jitter"),
			Beta:            rapid.SampledFrom([]float64{0, 1, 10}).Draw(t, "Beta"),
			Negative:        window(0).Draw(t, "Negative"),
			Cooldown:        rapid.SampledFrom([]time.Duration{0, 0, 3 * time.Second}).Draw(t, "Cooldown"),
		}
	})
}

func whatHappens() *rapid.Generator[[]step] {
	lengths := rapid.SampledFrom([]time.Duration{
		0, 1, 10 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 20 * time.Second, time.Minute})
	what := rapid.SampledFrom([]string{"ask", "ask", "ask", "ask", "ask", "fail", "fail", "absent", "set", "delete", "lock", "break", "mend"})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{what.Draw(t, "what"), rapid.IntRange(0, 1).Draw(t, "replica"), lengths.Draw(t, "takes"), lengths.Draw(t, "then")}
	}), 1, 40)
}

// Guarantee 13: whatever happens, no value is served beyond its windows, the last of which is for trouble only, a stale
// one is flagged, its age is true, and one that was deleted does not come back.
func TestNoValueIsServedBeyondItsWindows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		policy, happens := policies().Draw(r, "policy"), whatHappens().Draw(r, "happens")
		var fault error
		synctest.Test(t, func(t *testing.T) { fault = newHistory(t, policy).all(happens) })
		if fault != nil {
			r.Fatal(fault)
		}
	})
}

// history is what has happened to a key so far.
type history struct {
	*fleet
	policy          stale.Policy
	start           time.Time
	deleted, locked time.Duration // since start
	noValue         atomic.Int64  // since start, when a computation last said so
	broken          atomic.Bool
}

const waits = 2 * time.Second

func newHistory(t *testing.T, policy stale.Policy) *history {
	h := &history{policy: policy, start: time.Now(), deleted: -1}
	h.noValue.Store(-1)
	m := cache.NewMemory()
	store := &shim{Memory: m, before: func(_ context.Context, step string) error {
		if h.broken.Load() && step != "delete" {
			return errDown
		}
		return nil
	}}
	h.fleet = fleetOver(t, m, cache.Options[string]{Policy: policy, Wait: waits}, store, store)
	h.strangers = true
	return h
}

func (h *history) now() time.Duration { return time.Since(h.start) }

func (h *history) all(happens []step) error {
	for i, s := range happens {
		if err := h.one(s); err != nil {
			return fmt.Errorf("%w\nwith %+v after\n%v", err, h.policy, happens[:i+1])
		}
		time.Sleep(s.then)
		synctest.Wait()
	}
	return nil
}

func (h *history) one(s step) error {
	c := h.replicas[s.replica]
	switch s.what {
	case "set":
		value := h.value(h.now())
		if !h.broken.Load() {
			return c.Set(h.t.Context(), "k", value)
		}
	case "delete":
		defer func() { h.deleted = h.now() }()
		return c.Delete(h.t.Context(), "k")
	case "lock":
		if _, err := h.memory.Locker().Acquire(h.t.Context(), "k", s.takes+time.Second); err == nil {
			h.locked = h.now() + s.takes + time.Second
		}
	case "break":
		h.broken.Store(true)
	case "mend":
		h.broken.Store(false)
	default:
		return h.check(s)
	}
	return nil
}

// value says when it was begun and when it was ready.
func (h *history) value(begun time.Duration) string { return fmt.Sprintf("%d %d", begun, h.now()) }

// check asks, and judges the reply.
func (h *history) check(s step) error {
	busy := h.fleet.now.Load() > 0 || h.now() < h.locked || h.replicas[0].InFlight()+h.replicas[1].InFlight() > 0
	asked := h.now()
	r := h.askFor(h.t.Context(), s.replica, "k", func(ctx context.Context) (string, error) {
		h.enter()
		defer h.fleet.now.Add(-1)
		begun := h.now()
		if err := pause(ctx, s.takes); err != nil {
			return "", err
		}
		switch s.what {
		case "fail":
			return "", errDown
		case "absent":
			h.noValue.Store(int64(h.now()))
			return "", cache.ErrNotFound
		}
		return h.value(begun), nil
	})
	trouble := busy || s.what == "fail" || s.takes >= waits || h.policy.Cooldown > 0
	switch {
	case r.took > waits:
		return fmt.Errorf("waited %v", r.took)
	case errors.Is(r.err, cache.ErrNotFound):
		if said := time.Duration(h.noValue.Load()); said < 0 || said < h.now()-max(h.policy.Negative, r.took) {
			return errors.New("not found, though nobody said so")
		}
		return nil
	case r.err != nil && (!trouble || r.Result != cache.Result[string]{}):
		return fmt.Errorf("%+v with %w", r.Result, r.err)
	case errors.Is(r.err, recompute.ErrBusy) && r.took < waits:
		return errors.New("busy too early")
	case r.err != nil:
		return nil
	}
	return h.judge(r, asked, trouble)
}

func (h *history) judge(r reply, asked time.Duration, trouble bool) error {
	var begun, ready time.Duration
	if _, err := fmt.Sscan(r.Value, &begun, &ready); err != nil {
		return err
	}
	age, p := h.now()-ready, h.policy
	says := fmt.Sprintf("%v, %v old, says %v", r.Outcome, age, r.Age)
	switch soft := p.Fresh + p.WhileRevalidate; {
	case r.Age != age:
		return fmt.Errorf("the age is wrong: %s", says)
	case begun < h.deleted && asked > h.deleted:
		return fmt.Errorf("deleted at %v: %s", h.deleted, says)
	case r.Outcome == cache.Hit && age >= p.Fresh:
		return fmt.Errorf("a hit is fresh: %s", says)
	case (r.Outcome == cache.Computed || r.Outcome == cache.Collapsed) && age > r.took:
		return fmt.Errorf("was there before it was asked for: %s", says)
	case r.Outcome == cache.Stale && age < time.Duration(float64(p.Fresh)*(1-p.Jitter)) && !h.broken.Load(): // or the last known one
		return fmt.Errorf("not stale: %s", says)
	case age >= soft+p.IfError && r.Outcome != cache.Computed && r.Outcome != cache.Collapsed:
		return fmt.Errorf("beyond all windows: %s", says)
	case age >= soft && age > r.took && r.Outcome != cache.Stale:
		return fmt.Errorf("beyond the windows and not flagged: %s", says)
	case age >= soft && !trouble:
		return fmt.Errorf("beyond the windows without trouble: %s", says)
	}
	return nil
}
