package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// Victim is a holder as its parent sees it.
type Victim struct {
	cmd  *exec.Cmd
	in   io.Closer
	once sync.Once
	dead chan struct{} // closed when the process has been killed and collected
}

// startHolder starts a child and returns once it computes.
func startHolder(ctx context.Context, h Holder) (*Victim, error) {
	cmd, err := holderCommand(h)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the holder: %w", err)
	}
	v := &Victim{cmd: cmd, in: in, dead: make(chan struct{})}
	stop := context.AfterFunc(ctx, v.kill)
	defer stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != holderSays {
		v.kill()
		return nil, fmt.Errorf("the holder never computed: it said %q, then %w", line, err)
	}
	return v, nil
}

// holderCommand is this program again, told to hold.
func holderCommand(h Holder) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	told, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), holderEnv+"="+string(told))
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// kill ends the child with SIGKILL, by its process id, and collects it.
func (v *Victim) kill() {
	v.once.Do(func() {
		_ = v.cmd.Process.Kill()
		_ = v.cmd.Wait()
		_ = v.in.Close()
		close(v.dead)
	})
}
