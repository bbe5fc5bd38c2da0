package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/fork"
	"codea1/replay/internal/replaytest"
)

// Commands that need tokens report compacted ones; the others work as before.
func TestCommandsOnACompactedLog(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	outputs := make(map[string]string)
	same := []string{
		"replay explain RUN --step 2", "replay rescore RUN --reward share --alpha 0.25 --groups", "replay scan RUN --code __eq__", "replay scan RUN --text class",
		"replay export RUN --table answers", "replay export RUN --table tests", "replay export RUN --table golden", "mistakes history RUN p0",
	}
	for _, args := range same {
		out, err := execute(t, strings.Fields(strings.ReplaceAll(args, "RUN", run))...)
		if err != nil {
			t.Fatal(err)
		}
		outputs[args] = out
	}
	out, err := execute(t, "replay", "compact", run, "--to", "step:1")
	if err != nil || !strings.Contains(out, "6 payloads up to event 18") {
		t.Fatalf("%s%v", out, err)
	}
	for _, args := range same {
		out, err := execute(t, strings.Fields(strings.ReplaceAll(args, "RUN", run))...)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(outputs[args], out); diff != "" {
			t.Errorf("%s (-before +after):\n%s", args, diff)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{"replay explain RUN --group s000001-q0000", "by code.sampled-0, without its tokens (compacted)"},
		{"replay verify RUN", "6 payloads are without their token ids and log-probs"},
		{"replay verify RUN --json", `"compacted":6`},
		{"replay export RUN --type code.sampled --group s000001-q0000", `"compacted":true`},
		{"replay compact RUN --to end --json", `"to":31,"compacted":4,"whole":0`},
		{"replay explain RUN --group s000002-q0000", "answer 0: 2 tokens, stop"},
		{"replay export RUN --table answers --group s000002-q0000", `"tokens":2`},
	} {
		out, err := execute(t, strings.Fields(strings.ReplaceAll(tt.args, "RUN", run))...)
		if err != nil || !strings.Contains(out, tt.want) {
			t.Errorf("%s: %v, want %s in:\n%s", tt.args, err, tt.want, out)
		}
	}
	_, err = execute(t, "replay", "retrain", run)
	var tokens *fork.TokensError
	if !errors.As(err, &tokens) || tokens.Step != 1 || tokens.Group != "s000001-q0000" || tokens.Seq != 8 {
		t.Errorf("retrain: %v", err)
	}
}

// A compaction to the start compacts nothing, even if later steps are trained.
func TestCompactToTheStart(t *testing.T) {
	t.Parallel()
	s := replaytest.NewStory(t)
	s.Start()
	s.Step(1)
	s.Group(s.Plan(events.PurposeTrain, 2, 0)) // still to be trained on
	for _, to := range []string{"start", "0", "step:0"} {
		run, l := eventlogtest.Run(t, s.Messages)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		out, err := execute(t, "replay", "compact", run, "--to", to, "--json")
		if err != nil || !strings.Contains(out, `"to":0,"compacted":0`) {
			t.Errorf("--to %s: %v\n%s", to, err, out)
		}
	}
}
