package demo

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress tells somebody who waits how far things are: as a bar on a terminal, else in plain lines.
type Progress struct {
	out      io.Writer
	terminal bool
}

// NewProgress returns a Progress that writes to out.
func NewProgress(out io.Writer) *Progress {
	file, ok := out.(*os.File)
	return &Progress{out: out, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// Start announces something of about steps steps. step is called after each, from any goroutine; done at the end.
func (p *Progress) Start(what string, steps int) (step, done func()) {
	if !p.terminal {
		fmt.Fprintf(p.out, "… %s\n", what)
		return func() {}, func() {}
	}
	bar := progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(p.out),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(50*time.Millisecond),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(),
	)
	// A bar that can't be drawn is no reason to stop.
	return func() { _ = bar.Add(1) }, func() { _ = bar.Finish() }
}
