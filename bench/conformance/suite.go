package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"
)

// category is a group of tests, as the suite lists them.
type category struct {
	ID    string
	Name  string
	Tests []test
}

// test is what the suite says of one.
type test struct {
	ID          string
	Kind        string   // required if "", optimal, check
	DependsOn   []string `json:"depends_on"` // without these it tells nothing
	BrowserOnly bool     `json:"browser_only"`
}

// result is what came of a test: that it passed, or the kind of error and its text.
type result struct {
	passed     bool
	kind, text string
}

// UnmarshalJSON reads what the suite's client writes: true, or a list of two strings.
func (r *result) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &r.passed) == nil {
		return nil
	}
	var lines []string
	if err := json.Unmarshal(b, &lines); err != nil || len(lines) != 2 {
		return fmt.Errorf("a result of the suite is %s, must be true or two strings", b)
	}
	r.kind, r.text = lines[0], lines[1]
	return nil
}

// node returns a run of Node.js in the suite's folder. The suite takes its parameters from npm's environment.
func node(ctx context.Context, suite string, parameters map[string]string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "node", append([]string{"--no-warnings"}, args...)...)
	cmd.Dir = suite
	cmd.Env = os.Environ()
	for name, value := range parameters {
		cmd.Env = append(cmd.Env, "npm_config_"+name+"="+value, "npm_package_config_"+name+"="+value)
	}
	return cmd
}

// output runs it, and tells what it complained about if it fails.
func output(cmd *exec.Cmd, into any) error {
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, complaints.String())
	}
	return json.Unmarshal(out, into)
}

// loadCategories lists all tests of the suite.
func loadCategories(ctx context.Context, suite string) (all []category, err error) {
	const list = "import tests from './tests/index.mjs'; console.log(JSON.stringify(tests))"
	return all, output(node(ctx, suite, nil, "--input-type=module", "--eval", list), &all)
}

// runClient runs all tests against the proxy.
func runClient(ctx context.Context, suite, proxy string) (results map[string]result, err error) {
	return results, output(node(ctx, suite, map[string]string{"base": proxy, "id": ""}, "test-engine/cli.mjs"), &results)
}

// readResults reads what the client of an earlier run wrote.
func readResults(file string) (results map[string]result, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return results, json.Unmarshal(b, &results)
}

// origin is the suite's own server, behind the proxy.
type origin struct {
	url *url.URL
	cmd *exec.Cmd
}

func startOrigin(ctx context.Context, suite string) (*origin, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	pids, err := os.CreateTemp("", "conformance-*.pid")
	if err != nil {
		return nil, err
	}
	defer os.Remove(pids.Name()) // the suite wants to write one, somewhere
	if err := pids.Close(); err != nil {
		return nil, err
	}
	cmd := node(ctx, suite, map[string]string{"protocol": "http", "port": port, "pidfile": pids.Name()}, "test-engine/server/server.mjs")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	o := &origin{&url.URL{Scheme: "http", Host: net.JoinHostPort("localhost", port)}, cmd}
	if err := o.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// freePort returns a port that nobody listens on, by now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

func (o *origin) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("the suite's server does not answer: is the folder right, and did npm install run there?"))
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, o.url.String()+"/README.md", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			return resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close ends the process.
func (o *origin) Close() error {
	err := o.cmd.Process.Kill()
	_ = o.cmd.Wait() // that it was killed is known
	return err
}
