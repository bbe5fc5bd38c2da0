package main

import (
	"bufio"
	"log/slog"
	"strings"
	"testing"

	"github.com/creack/pty"

	"codea1/events/progress"
)

// Log lines have colours on a terminal, and none with NO_COLOR or on one that only
// shows lines.
func TestColoursOfTheLog(t *testing.T) {
	for _, c := range []struct {
		variable, value   string
		draws, hasColours bool
	}{
		{"TERM", "xterm", true, true},
		{"NO_COLOR", "1", true, false},
		{"TERM", "dumb", false, false},
	} {
		t.Run(c.variable+"="+c.value, func(t *testing.T) {
			t.Setenv("TERM", "xterm")
			t.Setenv("NO_COLOR", "")
			t.Setenv(c.variable, c.value)
			ours, theirs, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			defer theirs.Close()
			if have := progress.IsTerminal(theirs); have != c.draws {
				t.Errorf("a bar is drawn: %v, want %v", have, c.draws)
			}
			newLogger(theirs, slog.LevelInfo).Warn("the disk is full", "run", "r")
			line, err := bufio.NewReader(ours).ReadString('\n')
			if err != nil || !strings.Contains(line, "the disk is full") {
				t.Fatalf("%q, %v", line, err)
			}
			if have := strings.Contains(line, "\x1b["); have != c.hasColours {
				t.Errorf("%q has colours: %v, want %v", line, have, c.hasColours)
			}
		})
	}
}
