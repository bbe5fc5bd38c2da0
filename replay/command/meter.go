package command

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// meterFrom is the number of events from which a command shows how far it is:
// less is done before a bar could be read.
const meterFrom = 20_000

// meter shows on a terminal how far a long command is. A nil meter shows
// nothing.
type meter struct{ bar *progressbar.ProgressBar }

// newMeter returns a meter on standard error, nil unless that is a terminal.
func newMeter(what string, total uint64) *meter {
	if total < meterFrom || !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	return &meter{progressbar.NewOptions64(int64(total),
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())}
}

// at says that done events are done.
func (m *meter) at(done uint64) {
	if m != nil && done%512 == 0 {
		_ = m.bar.Set64(int64(done)) // a bar that cannot be drawn is no reason to stop
	}
}

// to is at for a command that makes long steps.
func (m *meter) to(done uint64) {
	if m != nil {
		_ = m.bar.Set64(int64(done))
	}
}

func (m *meter) finish() {
	if m != nil {
		_ = m.bar.Finish()
	}
}

// showProgress is a fork.Progress.
func showProgress(operation string, total uint64) (at func(done uint64), finish func()) {
	m := newMeter(operation, total)
	return m.at, m.finish
}
