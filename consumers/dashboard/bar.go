package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Bar shows the progress of the run of a follower.
type Bar struct {
	follower *Follower
	out      io.Writer
	terminal bool          // draw a bar in place instead of lines
	every    time.Duration // shortest time between two updates
	phase    string
	finished bool    // the run
	line     string  // the last line written; of the phase on a terminal, empty for none
	share    float64 // of the groups of the phase that have ended
}

// NewBar returns a bar, which Run shows. On a terminal it draws a bar in place,
// elsewhere it writes lines.
func NewBar(follower *Follower, out io.Writer, terminal bool) *Bar {
	b := &Bar{follower: follower, out: out, terminal: terminal, every: 10 * time.Second}
	if terminal {
		b.every = 200 * time.Millisecond
	}
	return b
}

// Run shows progress until the run is finished or ctx ends, and leaves the
// cursor at the start of a line. It returns only errors of the output.
func (b *Bar) Run(ctx context.Context) error {
	changes, unsubscribe := b.follower.Subscribe()
	defer unsubscribe()
	tick := time.NewTicker(b.every)
	defer tick.Stop()
	resized := make(chan os.Signal, 1)
	if b.terminal {
		signal.Notify(resized, syscall.SIGWINCH)
		defer signal.Stop(resized)
	}
	for {
		select {
		case <-ctx.Done():
			return errors.Join(b.show(), b.end())
		case <-changes:
		case <-resized:
		}
		if err := b.show(); err != nil {
			return err
		}
		if b.finished {
			return b.end()
		}
		select {
		case <-ctx.Done():
			return errors.Join(b.show(), b.end())
		case <-tick.C:
		}
	}
}

func (b *Bar) show() error {
	var p Progress
	var text string
	b.follower.View(func(s *State) { p, text, b.finished = s.Progress(), describe(s), s.Finished != "" })
	if !b.terminal {
		if text == b.line {
			return nil
		}
		b.line = text
		_, err := fmt.Fprintln(b.out, text)
		return err
	}
	if phase := fmt.Sprint(p.Phase, p.Tag, p.Total); phase != b.phase {
		if err := b.end(); err != nil {
			return err
		}
		b.phase = phase
	}
	if p.Total <= 0 || p.Phase == PhaseFinished {
		return nil
	}
	b.line, b.share = text, min(1, float64(p.Done)/float64(p.Total))
	return b.draw()
}

// draw draws the line of the phase with a bar, if the terminal has room for one. The
// cursor stays at its start: a terminal that becomes narrower wraps the line below
// the cursor, where the next draw erases it.
func (b *Bar) draw() error {
	const eraseBelow = "\r\x1b[J"
	line, most := []rune(b.line), b.width()-1
	percent := fmt.Sprintf("  %3.0f%% [", math.Floor(100*b.share))
	if room := most - len(line) - len(percent) - len("]"); room >= 8 {
		done := int(b.share * float64(room))
		line = append(line, []rune(percent+strings.Repeat("=", done)+strings.Repeat(" ", room-done)+"]")...)
	}
	_, err := io.WriteString(b.out, eraseBelow+string(line[:min(len(line), most)])+"\r")
	return err
}

// width returns the columns of the terminal now.
func (b *Bar) width() int {
	const usual = 80
	if f, ok := b.out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return usual
}

// end draws the line of the phase for the last time and begins a new one.
func (b *Bar) end() error {
	if !b.terminal || b.line == "" {
		return nil
	}
	err := b.draw()
	b.line = ""
	_, newLine := fmt.Fprintln(b.out)
	return errors.Join(err, newLine)
}

// describe returns the progress of a run in one line, with the shares of new and
// of historical tests passed and the mean rewards of the newest step.
func describe(s *State) string {
	p := s.Progress()
	var b strings.Builder
	switch p.Phase {
	case PhaseStarting:
		return "starting"
	case PhaseEvaluating:
		eval := s.evaluating()
		fmt.Fprintf(&b, "evaluate %s  %d/%d groups", eval.Name(), p.Done, p.Total)
		if avg := eval.Avg(); !math.IsNaN(avg) {
			fmt.Fprintf(&b, "  avg@%d %s", eval.Answers, percent(avg))
		}
		if reach := eval.Reach(); !math.IsNaN(reach) {
			fmt.Fprintf(&b, "  reach %s", percent(reach))
		}
	case PhaseTraining:
		fmt.Fprintf(&b, "step %d/%d", p.Step, p.Steps)
		_, point := s.Series.Last()
		for _, m := range []struct {
			name string
			mean Mean
		}{{"pass", point.means[passNew]}, {"hist", s.Series.LastHist()}, {"code", point.means[rewardCode]}, {"test", point.means[rewardTest]}} {
			if v := m.mean.Value(); !math.IsNaN(v) {
				fmt.Fprintf(&b, "  %s %.2f", m.name, v)
			}
		}
	case PhaseFinished:
		if s.Steps == 0 {
			return "evaluation " + s.Finished
		}
		return fmt.Sprintf("%s after %d of %d steps", s.Finished, s.Trained(), s.Steps)
	}
	if p.Known {
		fmt.Fprintf(&b, "  %s left", duration(p.Left))
		if p.OfPhase {
			b.WriteString(" of this evaluation")
		}
	}
	return b.String()
}
