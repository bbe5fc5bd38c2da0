// Package progress draws the progress bars of commands.
package progress

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// New returns a bar with a name, for work of most parts. It draws on w if that is a
// terminal.
func New[N int | int64 | uint64](w io.Writer, most N, name string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(int64(most),
		progressbar.OptionSetVisibility(IsTerminal(w)),
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(name),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
