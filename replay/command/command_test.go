package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"codea1/events/connect"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// embedded is the host of runs with an embedded server.
type embedded struct{}

// Bus implements tap.Host.
func (embedded) Bus(string) (*connect.Flags, error) {
	return &connect.Flags{URL: connect.Embedded}, nil
}

// execute runs a command line as the program does.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return executeWith(t.Context(), t, args...)
}

func executeWith(ctx context.Context, t *testing.T, args ...string) (string, error) {
	t.Helper()
	var cli struct {
		Mistakes Mistakes      `cmd:""`
		Replay   Command       `cmd:""`
		Shadow   ShadowCommand `cmd:""`
	}
	cli.Shadow.Recipes, cli.Shadow.Host = replaytest.Recipes{}, embedded{}
	cli.Replay.Recipes, cli.Replay.Retrainer = replaytest.Recipes{}, testTrainer{}
	parser, err := kong.New(&cli)
	if err != nil {
		t.Fatal(err)
	}
	command, err := parser.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	command.BindTo(ctx, (*context.Context)(nil))
	command.BindTo(&out, (*io.Writer)(nil))
	command.Bind(slog.New(slog.DiscardHandler))
	err = command.Run()
	return out.String(), err
}

func TestCommands(t *testing.T) {
	runs := t.TempDir()
	l := eventlogtest.Open(t, eventlog.Dir(filepath.Join(runs, "r1")), eventlog.Options{})
	for slot := range 9 {
		eventlogtest.Append(t, l, eventlogtest.At(3*slot, replaytest.Group(t, slot)...))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(runs, "r1"), filepath.Join(runs, "r2")); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(runs, "r2")
	for _, tt := range []struct {
		args string
		want string
	}{
		{"mistakes list r2 --runs-dir " + runs + " --limit 3", `
PROBLEM  COUNT  CALL  EXPECTED
p0       3      f(0)  0
p0       2      f(3)  0
p0       1      f(2)  0
`[1:]},
		{"mistakes list " + run + " --sort count --limit 4", `
PROBLEM  COUNT  CALL  EXPECTED
p0       3      f(0)  0
p1       3      f(1)  0
p2       3      f(2)  0
p3       3      f(3)  0
`[1:]},
		{"mistakes list " + eventlog.Dir(run) + " --problem p5 --json", `
{"problem":"p5","call":"f(1)","expected":"0","count":2,"order":2}
{"problem":"p5","call":"f(0)","expected":"0","count":1,"order":1}
`[1:]},
		{"mistakes show " + run + " p5", `
# problem p5: 2 tests in the Mistake Book
assert f(1) == 0  # count 2
assert f(0) == 0  # count 1
`[1:]},
		{"mistakes show " + run + " p5 --at start", "# problem p5: 0 tests in the Mistake Book\n"},
		{"mistakes show " + run + " p5 --at start --json", ""},
	} {
		got, err := execute(t, strings.Fields(tt.args)...)
		if err != nil {
			t.Errorf("%s: %v", tt.args, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.args, diff)
		}
	}
	if _, err := execute(t, "replay", "verify", filepath.Join(runs, "r3")); !errors.Is(err, eventlog.ErrNoLog) {
		t.Errorf("a run that is not there: %v", err)
	}
}

// TestUnknownNames: a command that is asked for an unknown problem, test or group names
// it, tells how to list the known ones, and prints nothing else.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, name, hint string }{
		{"mistakes show RUN nope", `problem "nope"`, "codea1 mistakes list"},
		{"mistakes show RUN nope --json", `problem "nope"`, "codea1 mistakes list"},
		{"mistakes list RUN --problem nope", `problem "nope"`, "codea1 mistakes list"},
		{"mistakes history RUN nope", `problem "nope"`, "codea1 mistakes list"},
		{"mistakes history RUN nope --json", `problem "nope"`, "codea1 mistakes list"},
		{"mistakes history RUN p0 --call f(7)", "problem p0: no test with the call f(7)", "codea1 mistakes history"},
		{"mistakes history RUN p0 --call f(7) --json", "problem p0: no test with the call f(7)", "codea1 mistakes history"},
		{"mistakes diff RUN --to step:9", "step 9", "not been trained"},
		{"mistakes export RUN --at 999", "position 999", "the log ends at 31"},
		{"replay explain RUN --group nope", "group nope", "codea1 replay explain RUN --step N"},
		{"replay explain RUN --step 9", "step 9", "codea1 replay state"},
	} {
		out, err := execute(t, strings.Fields(strings.Replace(tt.args, "RUN", run, 1))...)
		if err == nil || out != "" || !strings.Contains(err.Error(), tt.name) || !strings.Contains(err.Error(), tt.hint) {
			t.Errorf("%s: %v, output %q; want %q, %q", tt.args, err, out, tt.name, tt.hint)
		}
	}
}

// TestTranscript reads testdata/commands: `run` with a command line on the log of a whole
// run, with the directory RUN, and the output.
func TestTranscript(t *testing.T) {
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	datadriven.RunTest(t, "testdata/commands", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "run" {
			d.Fatalf(t, "unknown command")
		}
		args := strings.Fields(strings.ReplaceAll(d.Input, "RUN", run))
		out, err := execute(t, args...)
		if err != nil {
			out += "error: " + err.Error() + "\n"
		}
		if out == "" {
			out = "nothing\n"
		}
		return strings.ReplaceAll(out, run, "RUN")
	})
}

// An interrupted command returns the error and leaves no snapshot.
func TestInterruptedCommands(t *testing.T) {
	messages := replaytest.Tell(t)
	for slot := range 40 {
		messages = append(messages, replaytest.Group(t, 900+slot)...)
	}
	run, l := eventlogtest.Run(t, messages)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{
		"replay verify RUN", "replay explain RUN --group s000001-q0000", "replay explain RUN --step 1", "replay rescore RUN --reward share",
		"replay export RUN", "replay export RUN --table golden", "replay scan RUN --code x", "replay retrain RUN", "replay rebuild RUN RUN-2",
		"mistakes history RUN p0", "mistakes diff RUN --to step:1", "replay compact RUN --to step:1", "replay state RUN",
	} {
		_, err := executeWith(interrupted, t, strings.Fields(strings.ReplaceAll(args, "RUN", run))...)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", args, err)
		}
		if left, _ := filepath.Glob(filepath.Join(run, ".log-read-*")); len(left) > 0 {
			t.Fatalf("%s leaves %v", args, left)
		}
	}
}
