package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	incidentKeys    = 200
	incidentCallers = 16 // at most, on each replica
)

func failingOrigin() Scenario {
	const lasts = 5 * time.Second
	return Scenario{
		Name: "failing-origin", About: "hot keys that live 1 s; for 5 s every computation fails, then they work again", Alone: true,
		Plan: func(Params) Plan {
			return Plan{
				Terms:   Terms{Fresh: time.Second, WhileRevalidate: time.Minute, IfError: time.Hour},
				Compute: 50 * time.Millisecond, Replicas: outageReplicas,
			}
		},
		Run: func(ctx context.Context, t *Trial) error {
			crowd := t.crowd(ctx, min(t.Callers, incidentCallers), &Crowd{name: "key", keys: 20, rest: outageRest})
			if err := pause(ctx, 3*time.Second); err != nil {
				return err
			}
			before, _ := t.origin.counts()
			from := now()
			t.origin.set(errOrigin)
			if err := pause(ctx, lasts); err != nil {
				return err
			}
			t.origin.set(nil)
			to := now()
			during, _ := t.origin.counts()
			err := pause(ctx, 3*time.Second)
			crowd.end()
			t.noteRate("computations_per_s_before", "before", before, 3*time.Second)
			t.noteRate("computations_per_s_during", "while it failed", during-before, lasts)
			t.noteTrouble(from, to)
			return err
		},
	}
}

func slowOrigin() Scenario {
	return Scenario{
		Name: "slow-origin", About: "a computation takes 20 ms for each that is under way; half of 200 keys are lost at peak; callers try three times for 300 ms", Alone: true,
		Plan: func(Params) Plan {
			return Plan{
				Terms:   Terms{Fresh: outlast},
				Compute: 20 * time.Millisecond, Crowd: true, Replicas: outageReplicas,
			}
		},
		Run: func(ctx context.Context, t *Trial) error {
			fill(ctx, t)
			crowd := t.crowd(ctx, min(t.Callers, incidentCallers), &Crowd{
				name: "key", keys: incidentKeys, rest: outageRest, patient: 300 * time.Millisecond, tries: 3,
			})
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
			before, _ := t.origin.counts()
			from := now()
			if err := loseHalf(ctx, t.server.Addr); err != nil {
				return err
			}
			err := pause(ctx, 8*time.Second)
			crowd.end()
			after, _ := t.origin.counts()
			t.note("computations_after", float64(after-before), fmt.Sprintf("%d computations for 100 keys", after-before))
			t.noteTrouble(from, now())
			return err
		},
	}
}

// fill has one replica compute all keys, one after the other.
func fill(ctx context.Context, t *Trial) {
	for k := range incidentKeys {
		t.call(ctx, t.fleet.Replicas[0], fmt.Sprintf("key-%d", k))
	}
}

// loseHalf removes whatever belongs to the even ones of the keys.
func loseHalf(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	for scan := rdb.Scan(ctx, 0, "*key-*", 1000).Iterator(); ; {
		if !scan.Next(ctx) {
			return scan.Err()
		}
		if name := strings.TrimRight(scan.Val(), "}"); strings.ContainsAny(name[len(name)-1:], "02468") {
			if err := rdb.Unlink(ctx, scan.Val()).Err(); err != nil {
				return err
			}
		}
	}
}

func restart() Scenario {
	return Scenario{
		Name: "restart", About: "Redis is killed under load on 200 keys and is back at once, empty", Alone: true,
		Plan: func(Params) Plan {
			return Plan{
				Terms:   Terms{Fresh: outlast, WhileRevalidate: outlast},
				Compute: 50 * time.Millisecond, Replicas: outageReplicas,
			}
		},
		Run: func(ctx context.Context, t *Trial) error {
			t.fleet.herd(1, func(r Replica) {
				for k := range incidentKeys {
					t.call(ctx, r, fmt.Sprintf("key-%d", k))
				}
			})
			crowd := t.crowd(ctx, min(t.Callers, incidentCallers), &Crowd{name: "key", keys: incidentKeys, rest: outageRest})
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
			before, _ := t.origin.counts()
			from, opened := now(), t.proxy.Accepted()
			t.proxy.Refuse()
			if err := t.server.Kill(); err != nil {
				return err
			}
			if err := t.server.Restart(); err != nil {
				return err
			}
			if err := t.proxy.Restore(); err != nil {
				return err
			}
			away := now() - from
			err := pause(ctx, 3*time.Second)
			crowd.end()
			after, _ := t.origin.counts()
			t.note("away_ms", millis(away), fmt.Sprintf("away for %s ms", figure(away)))
			t.note("computations_after", float64(after-before), fmt.Sprintf("then %d computations for 200 keys", after-before))
			t.note("connections", float64(t.proxy.Accepted()-opened), fmt.Sprintf("%d connections opened", t.proxy.Accepted()-opened))
			t.noteTrouble(from, now())
			return err
		},
	}
}

func edited() Scenario {
	return Scenario{
		Name: "edited", About: "a page that takes 3 s to compute is deleted every half second for 12 s", Alone: true,
		Plan: func(Params) Plan {
			return Plan{Terms: Terms{Fresh: outlast}, Compute: 3 * time.Second, Replicas: outageReplicas}
		},
		Run: func(ctx context.Context, t *Trial) error {
			crowd := t.crowd(ctx, min(t.Callers, outageCallers), &Crowd{name: "page", keys: 1, rest: outageRest})
			var err error
			for n := 0; n < 24 && err == nil; n++ {
				if err = pause(ctx, 500*time.Millisecond); err == nil {
					err = t.fleet.Replicas[0].Delete(ctx, "page-0")
				}
			}
			crowd.end()
			return err
		},
	}
}

// noteRate says how many computations there were in a second.
func (t *Trial) noteRate(name, when string, computations int, in time.Duration) {
	rate := float64(computations) / in.Seconds()
	t.note(name, rate, fmt.Sprintf("%.1f computations/s %s", rate, when))
}

// noteTrouble says how many of the calls made in [from, to) were served in time, and how long after from the last trouble ended.
func (t *Trial) noteTrouble(from, to time.Duration) {
	share := inTime(t.calls.list(), "", from, to)
	t.note("in_time_percent", share, fmt.Sprintf("%.2f %% in time", share))
	var last time.Duration
	for _, c := range t.calls.list() {
		if c.Start >= from && (c.Err != nil || c.End-c.Start > soon) {
			last = max(last, c.End-from)
		}
	}
	t.note("trouble_ms", millis(last), fmt.Sprintf("trouble for %s ms", figure(last)))
}
