package dashboard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Bar shows the progress of the run of a follower.
type Bar struct {
	follower *Follower
	out      io.Writer
	terminal bool                     // draw a bar in place instead of lines
	every    time.Duration            // shortest time between two updates
	bar      *progressbar.ProgressBar // of the phase; nil without one
	phase    string
	finished bool   // the run
	complete bool   // every group of the phase has ended
	line     string // the last line written
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
	for {
		select {
		case <-ctx.Done():
			return errors.Join(b.show(), b.end())
		case <-changes:
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
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(int64(p.Total),
			progressbar.OptionSetWriter(b.out),
			progressbar.OptionFullWidth(),
			progressbar.OptionSetPredictTime(false), // it counts groups, not steps; the text has our estimate
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionSetTheme(progressbar.ThemeASCII),
		)
	}
	// At its total, progressbar finishes and draws no more. The last group may
	// end before the phase does, so only end sets the total.
	b.bar.Describe(text)
	b.complete = p.Done >= p.Total
	return b.bar.Set64(int64(min(p.Done, p.Total-1)))
}

// end draws the bar of the phase for the last time and begins a new line.
func (b *Bar) end() error {
	if b.bar == nil {
		return nil
	}
	bar := b.bar
	b.bar = nil
	if b.complete {
		if err := bar.Finish(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(b.out)
	return err
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
		return fmt.Sprintf("%s after %d of %d steps", s.Finished, s.Trained(), s.Steps)
	}
	if p.Known {
		fmt.Fprintf(&b, "  %s left", duration(p.Left))
	}
	return b.String()
}
