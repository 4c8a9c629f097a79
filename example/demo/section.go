package demo

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// section is what one part of the demonstration has to show.
type section struct {
	title    string
	head     []string
	rows     [][]string
	see      string // one sentence: what the numbers say
	broken   []string
	failures int // of Redis meanwhile
}

func (s *section) row(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if d, ok := cell.(time.Duration); ok {
			cell = short(d)
		}
		row[i] = fmt.Sprint(cell)
	}
	s.rows = append(s.rows, row)
}

// expect notes a promise that was not kept.
func (s *section) expect(kept bool, format string, args ...any) {
	if !kept {
		s.broken = append(s.broken, fmt.Sprintf(format, args...))
	}
}

// print writes the section: what happened, the table, what to see in it.
func (s *section) print(out io.Writer, number int) error {
	fmt.Fprintf(out, "\n%d  %s\n\n", number, s.title)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range append([][]string{s.head}, s.rows...) {
		fmt.Fprintln(table, "   "+strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	fmt.Fprintf(out, "\n   %s\n", s.see)
	if s.failures > 0 {
		fmt.Fprintf(out, "   (Redis failed or took too long %d times meanwhile. What is promised holds for a healthy one.)\n", s.failures)
	}
	for _, promise := range s.broken {
		fmt.Fprintf(out, "   NOT AS PROMISED: %s\n", promise)
	}
	return nil
}

// failed says whether a promise was broken. With a Redis in trouble there was none.
func (s *section) failed() bool { return len(s.broken) > 0 && s.failures == 0 }

// short keeps three digits of a duration.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
}
