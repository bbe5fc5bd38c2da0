package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

func TestStateCommand(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, want string }{
		{"replay state RUN --at start", "no event"},
		{"replay state RUN --at 9", "s000001-q0000"},
		{"replay state RUN --json --at step:1", `"position":18`},
		{"replay state RUN --json", `"role":"test","version":2,"step":2`},
	} {
		out, err := execute(t, strings.Fields(strings.ReplaceAll(tt.args, "RUN", run))...)
		if err != nil || !strings.Contains(out, tt.want) {
			t.Errorf("%s: %v, want %s in:\n%s", tt.args, err, tt.want, out)
		}
	}
	if _, err := execute(t, "replay", "state", run, "--at", fmt.Sprint(99)); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("behind the end: %v", err)
	}
}
