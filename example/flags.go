package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

type flags struct {
	redis   string
	addr    string
	goroot  string
	once    bool
	clients int
	steady  time.Duration
}

func parse(args []string, stderr io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("example", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&f.redis, "redis", "", "Redis server, `host:port` or redis:// URL (default $REDIS_URL; without either an embedded one)")
	set.StringVar(&f.addr, "addr", "127.0.0.1:0", "loopback `address` of the first replica; the others take the next ports, 0: any free ones")
	set.StringVar(&f.goroot, "goroot", "", "toolchain whose library is documented (default: the one on this machine)")
	set.BoolVar(&f.once, "once", false, "exit after the demonstration; the status tells whether all was as promised")
	set.IntVar(&f.clients, "clients", 40, "clients per replica in a stampede")
	set.DurationVar(&f.steady, "steady", 6*time.Second, "how long the page that runs out is kept under load")
	if err := set.Parse(args); err != nil {
		return flags{}, err
	}
	switch {
	case set.NArg() > 0:
		return flags{}, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case f.clients < 1 || f.clients > 1000:
		return flags{}, fmt.Errorf("-clients %d: must be 1 to 1000", f.clients)
	case f.steady < time.Second || f.steady > time.Hour:
		return flags{}, fmt.Errorf("-steady %s: must be 1s to 1h", f.steady)
	}
	f.redis = cmp.Or(f.redis, os.Getenv("REDIS_URL"))
	return f, nil
}
