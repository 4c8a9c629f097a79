package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parseParams reads the command line. Each error names the flag, the value and what is allowed.
func parseParams(args []string, stderr io.Writer) (Params, error) {
	p := defaultParams()
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // an error is printed once, by the caller, and not buried under the usage
	fs.Usage = func() {}
	declare(fs, &p)

	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(fs, stderr)
	}
	if err != nil {
		return p, err
	}
	if fs.NArg() > 0 {
		return p, fmt.Errorf("unexpected argument %q: bench takes flags only, see -h", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if p.Quick {
		p.quicken(given)
	}
	return p, nil
}

func declare(fs *flag.FlagSet, p *Params) {
	fs.Func("redis", "`address` of a Redis server on this machine (default: start a redis-server and stop it)", func(s string) error {
		p.Redis = s
		return checkLoopback(s)
	})
	ranged(fs, &p.Replicas, "replicas", "replicas", strconv.Atoi, 1, 50)
	ranged(fs, &p.Callers, "callers", "callers per replica", strconv.Atoi, 1, 500)
	ranged(fs, &p.Compute, "compute", "how long one computation takes", time.ParseDuration, time.Millisecond, 10*time.Second)
	ranged(fs, &p.Keys, "keys", "keys of the cold-keys scenario", strconv.Atoi, 1, 10_000)
	ranged(fs, &p.Runs, "runs", "runs of each arm through each scenario; the table shows the median one", strconv.Atoi, 1, 20)
	fs.Func("seed", "seed of key orders and pauses (default 1)", func(s string) (err error) {
		if p.Seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			return fmt.Errorf("must be a whole number from 0 to %d", uint64(1<<64-1))
		}
		return nil
	})
	group := map[string][]string{"outages": names(outages(), Scenario.name)}
	chosen(fs, &p.Scenarios, "scenarios", known(), Scenario.name, group)
	chosen(fs, &p.Arms, "arms", arms(), Arm.name, nil)
	fs.BoolVar(&p.JSON, "json", false, "print JSON instead of a table")
	fs.BoolVar(&p.Quick, "quick", false, "small figures for what is not given: seconds instead of a minute")
}

// ranged declares a flag whose value lies between lo and hi.
func ranged[T cmp.Ordered](fs *flag.FlagSet, dst *T, name, usage string, parse func(string) (T, error), lo, hi T) {
	usage = fmt.Sprintf("%s, %v to %v (default %v)", usage, lo, hi, *dst)
	fs.Func(name, usage, func(s string) error {
		v, err := parse(s)
		if err != nil || v < lo || v > hi {
			return fmt.Errorf("must be from %v to %v", lo, hi)
		}
		*dst = v
		return nil
	})
}

// chosen declares a flag that picks from known, by name or by the name of a group, in the order given.
func chosen[T any](fs *flag.FlagSet, dst *[]T, flag string, known []T, nameOf func(T) string, groups map[string][]string) {
	all := map[string]T{}
	for _, v := range known {
		all[nameOf(v)] = v
	}
	list := strings.Join(append(names(known, nameOf), slices.Sorted(maps.Keys(groups))...), ",")
	usual := strings.Join(names(*dst, nameOf), ",")
	fs.Func(flag, "comma-separated `names` (default "+usual+")", func(s string) error {
		*dst = nil
		seen := map[string]bool{}
		for word := range strings.SplitSeq(s, ",") {
			chosen, ok := groups[word]
			if !ok {
				chosen = []string{word}
			}
			for _, name := range chosen {
				v, ok := all[name]
				if !ok || seen[name] {
					return fmt.Errorf("must be one or more of %s, each once", list)
				}
				seen[name] = true
				*dst = append(*dst, v)
			}
		}
		return nil
	})
}

func names[T any](all []T, nameOf func(T) string) (names []string) {
	for _, v := range all {
		names = append(names, nameOf(v))
	}
	return names
}

func (s Scenario) name() string { return s.Name }
func (a Arm) name() string      { return a.Name }

// checkLoopback refuses servers on other machines: a load program must not be pointed at production by a typing error.
func checkLoopback(addr string) error {
	const want = "must be host:port with localhost, 127.x.y.z or [::1] as the host"
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s", want)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%s and a port from 1 to 65535", want)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s: this puts a server under load, so it stays on this machine", want)
	}
	return nil
}

func usage(fs *flag.FlagSet, w io.Writer) {
	fmt.Fprintln(w, "bench puts a cold or expiring key in front of many callers on several replicas and measures what happens.")
	fmt.Fprintln(w, "\nScenarios:")
	for _, s := range scenarios() {
		fmt.Fprintf(w, "  %-16s %s\n", s.Name, s.About)
	}
	fmt.Fprintln(w, "\nOutages (-scenarios outages, or one of them; each trial breaks a redis-server of its own):")
	for _, s := range outages() {
		fmt.Fprintf(w, "  %-16s %s\n", s.Name, s.About)
	}
	fmt.Fprintln(w, "\nArms:")
	for _, a := range arms() {
		fmt.Fprintf(w, "  %-13s %s\n", a.Name, a.About)
	}
	fmt.Fprintln(w, "\nFlags:")
	fs.SetOutput(w)
	fs.PrintDefaults()
}
