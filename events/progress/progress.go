// Package progress draws the progress bars of commands.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Bar shows how much of a command's work is done, and about how long the rest takes.
// All methods are safe for concurrent use.
type Bar struct {
	bar  *progressbar.ProgressBar
	name string
	now  func() time.Time

	mu                  sync.Mutex
	began               time.Time
	first, done, latest int64 // done before the command, done now, all
}

// New returns a bar with a name, for work of most parts. It draws on w if that is a
// terminal.
func New[N int | int64 | uint64](w io.Writer, most N, name string) *Bar {
	return &Bar{name: name, now: time.Now, began: time.Now(), latest: int64(most), bar: progressbar.NewOptions64(int64(most),
		progressbar.OptionSetVisibility(IsTerminal(w)),
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(name), progressbar.OptionSetPredictTime(false),
		progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())}
}

// Skip counts parts that an earlier command has done. They say nothing about the
// time of the others.
func (b *Bar) Skip(parts int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.first += int64(parts)
	return b.set(b.done + int64(parts))
}

// Add counts parts that are done.
func (b *Bar) Add(parts int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set(b.done + int64(parts))
}

// Set sets the number of parts that are done.
func (b *Bar) Set(done int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set(done)
}

func (b *Bar) set(done int64) error {
	b.done = done
	b.bar.Describe(b.text())
	return b.bar.Set64(done)
}

// Clear removes the bar from the terminal until the next part is done.
func (b *Bar) Clear() error { return b.bar.Clear() }

// Finish removes the bar.
func (b *Bar) Finish() error { return b.bar.Finish() }

// firstEstimate is the time below which there is no estimate: a terminal shows
// nothing worth reading in less.
const firstEstimate = time.Second

// text returns the name, and the time left at the mean speed so far. An estimate from
// the newest parts alone would change with each part.
func (b *Bar) text() string {
	passed, done := b.now().Sub(b.began), b.done-b.first
	if done <= 0 || b.done >= b.latest || passed < firstEstimate {
		return b.name
	}
	left := time.Duration(float64(passed) / float64(done) * float64(b.latest-b.done))
	return fmt.Sprintf("%s, about %v left", b.name, max(left, time.Second).Round(time.Second))
}

// IsTerminal reports whether w is a terminal that can draw a line again. One without
// cursor movement, as editors have it, says TERM=dumb.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
