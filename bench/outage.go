package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/bellwether-cache/bellwether/internal/faultproxy"
)

const (
	outageLasts    = 3 * time.Second
	outageReplicas = 4
	outageCallers  = 64 // at most, on each replica; half of them for each key
	outageRest     = 20 * time.Millisecond
	soon           = 250 * time.Millisecond // a caller was served in time
)

// outage is what happens to Redis, and how that ends.
type outage struct {
	name, about string
	begin, end  func(ctx context.Context, t *Trial, admin *redis.Client) error
}

func outages() []Scenario {
	var all []Scenario
	for _, o := range redisOutages() {
		all = append(all, o.scenario())
	}
	return append(all, failingOrigin(), slowOrigin(), restart(), edited())
}

func redisOutages() []outage {
	type step = func(ctx context.Context, t *Trial, admin *redis.Client) error
	proxy := func(f func(t *Trial)) step {
		return func(_ context.Context, t *Trial, _ *redis.Client) error { f(t); return nil }
	}
	server := func(f func(t *Trial) error) step {
		return func(_ context.Context, t *Trial, _ *redis.Client) error { return f(t) }
	}
	say := func(words ...any) step {
		return func(ctx context.Context, _ *Trial, admin *redis.Client) error { return admin.Do(ctx, words...).Err() }
	}
	restore := server(func(t *Trial) error { return t.proxy.Restore() })
	return []outage{
		{"refused", "Redis is away for 3 s: connections are refused", proxy(func(t *Trial) { t.proxy.Refuse() }), restore},
		{"silent", "Redis is away for 3 s: it accepts connections and never answers", proxy(func(t *Trial) { t.proxy.Silence() }), restore},
		{"black-hole", "Redis is away for 3 s: packets vanish", server(func(t *Trial) error { return t.proxy.BlackHole() }), restore},
		{"stopped", "Redis is stopped for 3 s (SIGSTOP), then goes on",
			server(func(t *Trial) error { return t.server.Pause() }), server(func(t *Trial) error { return t.server.Resume() })},
		{"killed", "Redis is killed (SIGKILL) and comes back empty after 3 s",
			server(func(t *Trial) error { t.proxy.Refuse(); return t.server.Kill() }),
			server(func(t *Trial) error { return errors.Join(t.server.Restart(), t.proxy.Restore()) })},
		{"paused", "CLIENT PAUSE for 3 s", say("CLIENT", "PAUSE", outageLasts.Milliseconds(), "ALL"), say("PING")},
		{"full", "Redis is full for 3 s (maxmemory, noeviction): it refuses writes",
			say("CONFIG", "SET", "maxmemory", "1"), say("CONFIG", "SET", "maxmemory", "0")},
		{"read-only", "no writable primary for 3 s: Redis answers reads and refuses writes",
			say("REPLICAOF", "127.0.0.1", "1"), say("REPLICAOF", "NO", "ONE")},
		{"lost-replies", "for 3 s each script and SET is done, but its reply is lost with the connection",
			proxy(func(t *Trial) {
				for _, marker := range []string{"\r\neval", "\r\nset\r\n"} {
					t.proxy.On(faultproxy.Rule{Marker: marker, Do: faultproxy.DropReply})
				}
			}), proxy(func(t *Trial) { t.proxy.Heal() })},
	}
}

func (o outage) scenario() Scenario {
	return Scenario{
		Name: o.name, About: o.about, Alone: true,
		Plan: func(Params) Plan {
			return Plan{
				Terms:    Terms{Fresh: time.Second, WhileRevalidate: time.Minute, IfError: time.Hour},
				Compute:  100 * time.Millisecond,
				Replicas: outageReplicas,
			}
		},
		Run: o.run,
	}
}

// run has callers ask for "warm-0", which every replica has seen, and from the beginning of the outage on for "cold-0", which none has.
func (o outage) run(ctx context.Context, t *Trial) error {
	admin := redis.NewClient(&redis.Options{Addr: t.server.Addr}) // past the proxy
	defer admin.Close()
	callers := max(1, min(t.Callers, outageCallers)/2)
	warm := t.crowd(ctx, callers, &Crowd{name: "warm", keys: 1, rest: outageRest})
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	from := now()
	if err := o.begin(ctx, t, admin); err != nil {
		return err
	}
	cold := t.crowd(ctx, callers, &Crowd{name: "cold", keys: 1, rest: outageRest})
	err := pause(ctx, outageLasts)
	to := now()
	if err = errors.Join(err, o.end(ctx, t, admin)); err != nil {
		return err
	}
	back := t.shared(ctx)
	warm.end()
	cold.end()
	t.noteOutage(from, to, back)
	return nil
}

// shared waits until the replicas share again: what one computes, the others find. It returns how long that took.
func (t *Trial) shared(ctx context.Context) time.Duration {
	began := now()
	for n := 0; ctx.Err() == nil; n++ {
		o := newOrigin(0, nil)
		var calls Calls
		for _, r := range t.fleet.Replicas {
			calls.make(ctx, r, fmt.Sprint("shared-", n), o)
		}
		failed := false
		for _, c := range calls.list() {
			failed = failed || c.Err != nil
		}
		if computations, _ := o.counts(); computations == 1 && !failed {
			break
		}
		_ = pause(ctx, outageRest)
	}
	return now() - began
}

func (t *Trial) noteOutage(from, to, back time.Duration) {
	for _, name := range []string{"warm", "cold"} {
		key := name + "-0"
		share := inTime(t.calls.list(), key, from, to)
		t.note(name+"_in_time_percent", share, fmt.Sprintf("%s: %.2f %% in time", name, share))
		each := float64(t.origin.begun(key, from, to)) / float64(t.Replicas)
		t.note(name+"_computations_per_replica", each, fmt.Sprintf("%.2f computations per replica", each))
	}
	t.note("back_ms", millis(back), fmt.Sprintf("back after %s ms", figure(back)))
}

// inTime is how many percent of the calls for a key that were made in [from, to) were served within 250 ms.
func inTime(calls []Call, key string, from, to time.Duration) float64 {
	made, served := 0, 0
	for _, c := range calls {
		if (key != "" && c.Key != key) || c.Start < from || c.Start >= to {
			continue
		}
		made++
		if c.Err == nil && c.End-c.Start <= soon {
			served++
		}
	}
	if made == 0 {
		return 0
	}
	return 100 * float64(served) / float64(made)
}
