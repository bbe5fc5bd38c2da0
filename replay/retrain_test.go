package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"codea1/events"
)

// testTrainer makes a version after every step whose groups it has read. Its
// weights are those of the story, or others from version wrong on.
type testTrainer struct{ wrong int }

func (tr testTrainer) Retrain(ctx context.Context, job RetrainJob) error {
	reader, err := job.Bus.Read(ctx, events.ReadConfig{Run: job.Run, Types: []events.Type{events.TypeGroupRewarded}})
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	var position events.Position
	for step := 1; step <= job.Steps; step++ {
		var groups []string
		for range storyGroups {
			m, after, err := reader.Next(ctx)
			if err != nil {
				return err
			}
			if after == position {
				return fmt.Errorf("position %s twice", after)
			}
			position = after
			groups = append(groups, m.Group)
		}
		weights := step
		if tr.wrong != 0 && step >= tr.wrong {
			weights = -step
		}
		m, err := events.Encode(events.New(job.Run, fmt.Sprintf("%s-v%06d", job.Role, step), "again", time.Now(), &events.PolicyUpdated{
			Role: job.Role, Version: step, Step: step, Groups: groups, Checkpoint: checkpoint(string(job.Role), weights),
		}))
		if err != nil {
			return err
		}
		if err := job.Bus.Publish(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func TestRetrain(t *testing.T) {
	t.Parallel()
	_, l := storyLog(t, tell(t))
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		var versions []int
		same, err := l.Retrain(t.Context(), testTrainer{}, role, "", "", func(v int) { versions = append(versions, v) })
		if err != nil || same != storySteps || len(versions) != storySteps {
			t.Errorf("%s: %d versions, %v, %v", role, same, versions, err)
		}
	}
	same, err := l.Retrain(t.Context(), testTrainer{wrong: 2}, events.RoleTest, "", "", nil)
	var diverged *DivergedError
	if !errors.As(err, &diverged) || diverged.Version != 2 || diverged.Role != events.RoleTest || same != 1 {
		t.Errorf("other weights: %d, %v", same, err)
	}
}

// A trainer that wants more than the log has is told so, and does not wait.
func TestRetrainOfACutLog(t *testing.T) {
	t.Parallel()
	messages := tell(t)
	var rest []events.Message
	for i := range messages {
		if messages[i].Group != "s000002-q0001" || messages[i].Type != events.TypeGroupRewarded {
			rest = append(rest, messages[i])
		}
	}
	_, l := storyLog(t, rest)
	same, err := l.Retrain(t.Context(), testTrainer{}, events.RoleCode, "", "", nil)
	if !errors.Is(err, errLogEnds) || same != 1 {
		t.Errorf("%d versions, %v", same, err)
	}
}

// A resumed run is trained again as one; not if it changed its schedule.
func TestRetrainOfAResumedRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		steps int
		want  error
	}{{storySteps, nil}, {storySteps + 1, ErrScheduleChanged}} {
		s := newStory(t)
		s.start()
		s.step(1)
		s.root("start-0002", &events.RunStarted{Attempt: 2, Steps: tt.steps, Build: "test", Code: checkpoint("code", 0), Test: checkpoint("test", 0)})
		s.step(2)
		_, l := storyLog(t, s.messages)
		if _, err := l.Retrain(t.Context(), testTrainer{}, events.RoleCode, "", "", nil); !errors.Is(err, tt.want) {
			t.Errorf("resumed with %d steps: %v", tt.steps, err)
		}
	}
}

func TestRetrainCommand(t *testing.T) {
	t.Parallel()
	run, l := storyLog(t, tell(t))
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
