package main

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
)

// progress is a bar on a terminal and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(w io.Writer, steps int) progress {
	f, ok := w.(*os.File)
	if !ok {
		return progress{}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return progress{}
	}
	return progress{progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(f),
		progressbar.OptionSetWidth(24),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionClearOnFinish(),
	)}
}

func (p progress) describe(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
	}
}

func (p progress) step() {
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
}

func (p progress) finish() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
