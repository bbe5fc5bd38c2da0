package dashboard

import (
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"codea1/events"
)

// screen is a terminal that understands the output of a bar. It keeps whole lines and
// breaks them into rows of its width.
type screen struct {
	width   int
	reflows bool // lines are broken anew after a resize; else they are cut
	lines   [][]rune
	line    int    // of the cursor
	column  int    // of the cursor in its line
	cut     string // the beginning of a control sequence
}

func (s *screen) write(t *testing.T, text string) {
	t.Helper()
	if s.lines == nil {
		s.lines = [][]rune{nil}
	}
	text, s.cut = s.cut+text, ""
	for text != "" {
		if strings.HasPrefix("\x1b[", text) {
			s.cut = text
			return
		}
		rest, erases := strings.CutPrefix(text, "\x1b[J")
		if erases {
			s.lines, text = s.lines[:s.line+1], rest
			s.lines[s.line] = s.lines[s.line][:min(s.column, len(s.lines[s.line]))]
			continue
		}
		symbol := []rune(text)[0]
		text = text[len(string(symbol)):]
		switch symbol {
		case '\r':
			s.column -= s.column % s.width
		case '\n':
			s.line, s.column = s.line+1, 0
			if s.line == len(s.lines) {
				s.lines = append(s.lines, nil)
			}
		case '\x1b':
			t.Fatalf("unknown control sequence before %q", text)
		default:
			for len(s.lines[s.line]) <= s.column {
				s.lines[s.line] = append(s.lines[s.line], ' ')
			}
			s.lines[s.line][s.column] = symbol
			s.column++
		}
	}
}

func (s *screen) resize(width int) {
	s.width = width
	for i := range s.lines {
		if !s.reflows {
			s.lines[i] = s.lines[i][:min(len(s.lines[i]), width)]
		}
	}
	if !s.reflows {
		s.column = min(s.column, width-1)
	}
}

// rows returns the rows with text.
func (s *screen) rows() (rows []string) {
	for _, line := range s.lines {
		for row := range slices.Chunk(line, s.width) {
			if text := strings.TrimSpace(string(row)); text != "" {
				rows = append(rows, text)
			}
		}
	}
	return rows
}

// A terminal of any width keeps one line of progress, also when it becomes narrower or
// wider, whether it breaks lines anew or not.
func TestBarKeepsOneLine(t *testing.T) {
	t.Parallel()
	for _, reflows := range []bool{true, false} {
		device, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer device.Close()
		defer tty.Close()
		s := &screen{reflows: reflows}
		f := NewFollower()
		bar := NewBar(f, tty, true)
		show := func() {
			t.Helper()
			if err := bar.show(); err != nil {
				t.Fatal(err)
			}
			s.write(t, drain(t, device, tty))
		}
		for _, m := range encode(t, start()...) {
			f.apply(&m)
		}
		for i, width := range []uint16{120, 60, 59, 33, 100, 20, 7, 2, 80, 79} {
			if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: width}); err != nil {
				t.Fatal(err)
			}
			s.resize(int(width))
			for range 2 {
				show()
				rows := s.rows()
				if len(rows) != 1 || len(rows[0]) >= int(width) || !strings.HasPrefix("step 2/2", rows[0][:min(len(rows[0]), 8)]) {
					t.Fatalf("reflows %v, resize %d to %d columns: %q", reflows, i, width, rows)
				}
			}
			if row := s.rows()[0]; width >= 100 && (len(row) != int(width)-1 || !strings.Contains(row, "% [") || !strings.HasSuffix(row, "]")) {
				t.Errorf("no bar of the whole width in %q", row)
			}
		}
		sc := &script{at: noon.Add(time.Minute)}
		for _, m := range encode(t, sc.rewarded(2, 0, 1, 0.5, 0.25), sc.updated(events.RoleCode, 2), sc.updated(events.RoleTest, 2), sc.finished(2, events.RunCompleted)) {
			f.apply(&m)
			show()
		}
		if rows := s.rows(); len(rows) != 1 || s.line != 1 || s.column != 0 {
			t.Errorf("at the end: %q, cursor in column %d of line %d", rows, s.column, s.line)
		}
	}
}

// drain returns the output that a terminal has got so far.
func drain(t *testing.T, device, tty *os.File) string {
	t.Helper()
	const mark = "\x00"
	if _, err := io.WriteString(tty, mark); err != nil {
		t.Fatal(err)
	}
	var text []byte
	buffer := make([]byte, 4096)
	for {
		n, err := device.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, buffer[:n]...)
		if before, found := strings.CutSuffix(string(text), mark); found {
			return strings.ReplaceAll(before, "\r\n", "\n") // the kernel adds the carriage returns
		}
	}
}

// A bar is drawn anew when its terminal changes, without news of the run.
func TestBarFollowsItsTerminal(t *testing.T) {
	device, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	defer tty.Close()
	f := NewFollower()
	for _, m := range encode(t, start()...) {
		f.apply(&m)
	}
	resize := func(width uint16) {
		if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: width}); err != nil {
			t.Fatal(err)
		}
	}
	// Without the terminal, a read that waits for it fails.
	defer time.AfterFunc(time.Minute, func() { tty.Close() }).Stop()
	resize(100)
	bar := NewBar(f, tty, true)
	bar.every = time.Millisecond
	ended := make(chan error, 1)
	go func() { ended <- bar.Run(t.Context()) }()
	drawn := func(width int) {
		t.Helper()
		s := &screen{width: width}
		buffer := make([]byte, 4096)
		for len(s.rows()) == 0 || len(s.rows()[0]) != width-1 {
			n, err := device.Read(buffer) // blocks until the bar is drawn
			if err != nil {
				t.Fatal(err)
			}
			s.write(t, string(buffer[:n]))
		}
	}
	drawn(100)
	resize(50)
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGWINCH); err != nil { // the kernel sends it to the owner of the terminal
		t.Fatal(err)
	}
	drawn(50)
	sc := &script{at: noon.Add(time.Minute)}
	for _, m := range encode(t, sc.updated(events.RoleCode, 2), sc.updated(events.RoleTest, 2), sc.finished(2, events.RunCompleted)) {
		f.apply(&m)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
