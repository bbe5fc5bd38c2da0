package command

import (
	"fmt"
	"os"
	"strings"
	"time"

	"codea1/events/progress"
	"codea1/replay/fork"
)

// meterFrom is the number of events from which a command shows its progress: fewer
// are done before a bar can be read.
const meterFrom = 20_000

// meter shows the progress of a long command on a terminal. A nil meter shows
// nothing.
type meter struct{ bar *progress.Bar }

// newMeter returns a meter of events on standard error, nil if that is not a
// terminal.
func newMeter(operation string, total uint64) *meter {
	if total < meterFrom {
		return nil
	}
	return newSlowMeter(operation, total)
}

// newSlowMeter is newMeter for parts that take long.
func newSlowMeter(operation string, total uint64) *meter {
	if !progress.IsTerminal(os.Stderr) {
		return nil
	}
	return &meter{progress.New(os.Stderr, total, operation)}
}

// at shows the number of events done.
func (m *meter) at(done uint64) {
	if m != nil && done%512 == 0 {
		_ = m.bar.Set(int64(done)) // a bar that cannot be drawn does not stop the command
	}
}

// to is at for a command with long steps.
func (m *meter) to(done uint64) {
	if m != nil {
		_ = m.bar.Set(int64(done))
	}
}

func (m *meter) finish() {
	if m != nil {
		_ = m.bar.Finish()
	}
}

// showProgress is a fork.Progress. It announces an operation that may take minutes,
// also where no bar can be drawn.
func showProgress(o fork.Operation) (at func(done uint64), finish func()) {
	if o.Takes == 0 {
		m := newMeter(o.Name, o.Total)
		return m.at, m.finish
	}
	fmt.Fprintf(os.Stderr, "%s; that takes about %v\n", o.Name, o.Takes.Round(time.Second))
	name, _, _ := strings.Cut(o.Name, " v") // without the versions
	m := newSlowMeter(name, o.Total)
	return m.to, m.finish
}
