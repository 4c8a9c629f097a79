// Package holder runs a process that holds the lease for a page, to be killed while it does.
//
// The process is this same program, started again with a variable in its environment; so every program (and test binary) that uses
// Start calls Main first.
package holder

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

const variable = "BELLWETHER_EXAMPLE_HOLDER"

const word = "rendering" // what the process says once its rendering has begun

// Task is what a holder renders, and where.
type Task struct {
	Redis  string // as backend.Open takes it
	Prefix string // of the fleet's keys
	GOROOT string
	Path   string
	Lease  time.Duration
}

// Holder is a running process.
type Holder struct {
	command *exec.Cmd
	stdin   io.Closer // the process ends when it closes, so that it never outlives us
}

// Start starts a process and returns once it renders, which it doesn't end by itself.
func Start(ctx context.Context, task Task) (*Holder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("holder: %w", err)
	}
	spec, err := json.Marshal(task)
	if err != nil {
		return nil, fmt.Errorf("holder: %w", err)
	}
	h := &Holder{command: exec.CommandContext(ctx, self)}
	h.command.Env = append(os.Environ(), variable+"="+string(spec))
	h.command.Stderr = os.Stderr
	stdout, err := h.start()
	if err != nil {
		return nil, fmt.Errorf("holder: start: %w", err)
	}
	said, err := bufio.NewReader(stdout).ReadString('\n')
	if said != word+"\n" {
		return nil, fmt.Errorf("holder: the process said %q instead of rendering: %w", said, errors.Join(err, h.Kill()))
	}
	return h, nil
}

func (h *Holder) start() (stdout io.Reader, err error) {
	if h.stdin, err = h.command.StdinPipe(); err != nil {
		return nil, err
	}
	if stdout, err = h.command.StdoutPipe(); err != nil {
		return nil, err
	}
	return stdout, h.command.Start()
}

// Kill ends the process as kill -9 does: it gets no chance to clean up.
func (h *Holder) Kill() error {
	if err := h.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("holder: kill: %w", err)
	}
	var exit *exec.ExitError
	if err := h.command.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("holder: wait: %w", err)
	}
	return nil
}
