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
	marks               []mark
}

// mark is a moment at which a number of parts of this command were done.
type mark struct {
	at   time.Time
	done int64
}

// maxMarks bounds the marks of a bar. Beyond it every second one is forgotten.
const maxMarks = 512

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
	if n := len(b.marks); done > b.first && (n == 0 || done-b.first > b.marks[n-1].done) {
		b.marks = append(b.marks, mark{b.now(), done - b.first})
	}
	if len(b.marks) > maxMarks {
		for i := range maxMarks / 2 {
			b.marks[i] = b.marks[2*i+1]
		}
		b.marks = b.marks[:maxMarks/2]
	}
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

// text returns the name, and the time left at the speed of the newest third of the time so
// far. The speed drifts, with the work and with the load of the machine: one since the begin
// would follow too late, and one of the newest parts would change with each.
func (b *Bar) text() string {
	now := b.now()
	passed, done := now.Sub(b.began), b.done-b.first
	if done <= 0 || b.done >= b.latest || passed < firstEstimate {
		return b.name
	}
	since, before := b.began, int64(0)
	for _, m := range b.marks {
		if now.Sub(m.at) < passed/3 {
			break
		}
		since, before = m.at, m.done
	}
	if done == before { // nothing was done in the newest third
		since, before = b.began, 0
	}
	left := time.Duration(float64(now.Sub(since)) / float64(done-before) * float64(b.latest-b.done))
	return fmt.Sprintf("%s, about %v left", b.name, max(left, time.Second).Round(time.Second))
}

// IsTerminal reports whether w is a terminal that can draw a line again. One without
// cursor movement, as editors have it, says TERM=dumb.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
