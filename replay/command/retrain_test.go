package command

import (
	"context"
	"strings"
	"testing"

	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/fork"
	"codea1/replay/internal/replaytest"
)

// testTrainer is a trainer that needs no engine.
type testTrainer struct {
	wrong int // first version with other weights, 0 for none
}

func (tr testTrainer) Retrain(ctx context.Context, job fork.RetrainJob) error {
	return replaytest.Train(ctx, job.Bus, job.Run, job.Role, job.Parts[len(job.Parts)-1].Last, tr.wrong)
}

func TestRetrainCommand(t *testing.T) {
	t.Parallel()
	run, l := eventlogtest.Run(t, replaytest.Tell(t))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := execute(t, "replay", "retrain", run)
	if want := "code: 2 versions trained again, each with the same weights\ntest: 2 versions trained again, each with the same weights\n"; err != nil || out != want {
		t.Errorf("%q, %v", out, err)
	}
	out, err = execute(t, "replay", "retrain", run, "--role", "test", "--json")
	if err != nil || strings.TrimSpace(out) != `{"role":"test","same":2}` {
		t.Errorf("%q, %v", out, err)
	}
}
