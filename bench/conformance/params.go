package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
)

// params is what the flags say.
type params struct {
	suite    string // folder of the suite
	results  string // file of an earlier run; "": run it
	listen   string
	origin   *url.URL
	redis    string // host:port; "": memory
	replicas int
	none     bool // no cache
	obey     bool
	cookies  bool // are of no account: neither Cookie nor Set-Cookie keeps a response from being shared
	required int  // the least that must pass
	optimal  int
	failing  int // the most required ones that may fail
}

func parseParams(args []string, stderr io.Writer) (p params, err error) {
	f := flag.NewFlagSet("conformance", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&p.suite, "suite", "", "run the suite in this `folder`, a clone of http-tests/cache-tests; needs node")
	f.StringVar(&p.results, "results", "", "score the results in this `file` instead of running the -suite, such as those that it publishes of other caches")
	f.StringVar(&p.listen, "listen", "127.0.0.1:0", "`address` of the proxy; port 0 takes any")
	origin := f.String("origin", "", "`URL` that the proxy is for, when there is no -suite")
	f.StringVar(&p.redis, "redis", "", "keep responses in the Redis server at this `address` (default: in memory)")
	f.IntVar(&p.replicas, "replicas", 1, "`number` of caches over the one store, asked in turn")
	f.BoolVar(&p.none, "none", false, "no cache: what a plain reverse proxy scores")
	f.BoolVar(&p.obey, "obey", false, "heed the Cache-Control of requests, see middleware.Options.Obey")
	f.BoolVar(&p.cookies, "cookies", false, "share responses whatever cookies there are, see middleware.Options.Cookies and SetCookies")
	f.IntVar(&p.required, "required", 0, "fail if fewer required tests pass")
	f.IntVar(&p.optimal, "optimal", 0, "fail if fewer optimal tests pass")
	f.IntVar(&p.failing, "failing", 1000, "fail if more required tests fail (those behind a failed one don't count)")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	switch {
	case f.NArg() > 0:
		return p, fmt.Errorf("there is %q after the flags: nothing may be", f.Arg(0))
	case p.results != "" && p.suite == "":
		return p, errors.New("-results needs a -suite, which knows the tests")
	case p.replicas < 1:
		return p, fmt.Errorf("-replicas is %d, must be at least 1", p.replicas)
	case (p.suite == "") == (*origin == ""):
		return p, errors.New("give either -suite or -origin")
	}
	p.origin, err = url.Parse(*origin)
	if err == nil && *origin != "" && (p.origin.Host == "" || p.origin.Scheme != "http" && p.origin.Scheme != "https") {
		err = fmt.Errorf("-origin is %q, must begin with http:// or https:// and have a host", *origin)
	}
	return p, err
}
