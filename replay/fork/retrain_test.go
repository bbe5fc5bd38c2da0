package fork

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

// testTrainer is a trainer without an engine.
type testTrainer struct {
	wrong int            // first version with other weights, 0 for none
	parts *[]RetrainPart // set to the job's parts, unless nil
}

func (tr testTrainer) Retrain(ctx context.Context, job RetrainJob) error {
	if tr.parts != nil {
		*tr.parts = job.Parts
	}
	return replaytest.Train(ctx, job.Bus, job.Run, job.Role, job.Parts[len(job.Parts)-1].Last, tr.wrong)
}

func TestRetrain(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		var progress [][2]int
		same, err := Retrain(t.Context(), l, testTrainer{}, role, "", "", func(done, of int) { progress = append(progress, [2]int{done, of}) })
		if err != nil || same != replaytest.Steps || !slices.Equal(progress, [][2]int{{0, 2}, {1, 2}, {2, 2}}) {
			t.Errorf("%s: %d versions, progress %v, %v", role, same, progress, err)
		}
	}
	same, err := Retrain(t.Context(), l, testTrainer{wrong: 2}, events.RoleTest, "", "", nil)
	var diverged *DivergedError
	if !errors.As(err, &diverged) || diverged.Version != 2 || diverged.Role != events.RoleTest || same != 1 {
		t.Errorf("other weights: %d, %v", same, err)
	}
}

// stoppedTrainer is a trainer that is interrupted: it returns no error.
type stoppedTrainer struct{ stop func() }

func (s stoppedTrainer) Retrain(context.Context, RetrainJob) error {
	s.stop()
	return nil
}

func TestRetrainInterrupted(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Retrain(ctx, l, stoppedTrainer{cancel}, events.RoleCode, "", "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := Retrain(t.Context(), l, stoppedTrainer{func() {}}, events.RoleCode, "", "", nil); err == nil || !strings.Contains(err.Error(), "trained 0 of 2 versions") {
		t.Errorf("stopped by itself: %v", err)
	}
}

// A trainer that reads past the end of the log gets an error and does not wait.
func TestRetrainOfACutLog(t *testing.T) {
	t.Parallel()
	messages := replaytest.Tell(t)
	var rest []events.Message
	for i := range messages {
		if messages[i].Group != "s000002-q0001" || messages[i].Type != events.TypeGroupRewarded {
			rest = append(rest, messages[i])
		}
	}
	_, l := eventlogtest.Run(t, rest)
	same, err := Retrain(t.Context(), l, testTrainer{}, events.RoleCode, "", "", nil)
	if !errors.Is(err, errLogEnds) || same != 1 {
		t.Errorf("%d versions, %v", same, err)
	}
}

// A resumed run is trained again, unless it has changed its schedule.
func TestRetrainOfAResumedRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		steps int
		want  error
	}{{replaytest.Steps, nil}, {replaytest.Steps + 1, ErrScheduleChanged}} {
		s := replaytest.NewStory(t)
		s.Start()
		s.Step(1)
		s.Root("start-0002", &events.RunStarted{Attempt: 2, Steps: tt.steps, Build: "test", Code: replaytest.Checkpoint("code", 0), Test: replaytest.Checkpoint("test", 0)})
		s.Step(2)
		_, l := eventlogtest.Run(t, s.Messages)
		if _, err := Retrain(t.Context(), l, testTrainer{}, events.RoleCode, "", "", nil); !errors.Is(err, tt.want) {
			t.Errorf("resumed with %d steps: %v", tt.steps, err)
		}
	}
}

// The shared versions are trained with the configuration of the origin, the later
// ones with that of the fork.
func TestRetrainOfAFork(t *testing.T) {
	t.Parallel()
	forked := func(config string) *events.RunStarted {
		return &events.RunStarted{
			Attempt: 2, Steps: 7, Build: "test", Config: config, Code: replaytest.Checkpoint("code", 0), Test: replaytest.Checkpoint("test", 0),
			Origin: &events.Origin{Run: "r0", Events: 1, Chain: eventlog.Hash{1}.String()},
		}
	}
	for _, tt := range []struct {
		name   string
		before int // steps trained before the fork
		want   []RetrainPart
	}{
		{"in the middle", 1, []RetrainPart{{Last: 1}, {Last: replaytest.Steps}}},
		{"at the start", 0, []RetrainPart{{Last: replaytest.Steps}}},
		{"at the end", replaytest.Steps, []RetrainPart{{Last: replaytest.Steps}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := replaytest.NewStory(t)
			s.Start()
			for step := 1; step <= tt.before; step++ {
				s.Step(step)
			}
			s.Root("start-0002", forked("alpha: 0.25"))
			for step := tt.before + 1; step <= replaytest.Steps; step++ {
				s.Step(step)
			}
			_, l := eventlogtest.Run(t, s.Messages)
			var parts []RetrainPart
			if _, err := Retrain(t.Context(), l, testTrainer{parts: &parts}, events.RoleCode, "", "", nil); err != nil {
				t.Fatal(err)
			}
			if len(parts) != len(tt.want) {
				t.Fatalf("%d parts, want %d", len(parts), len(tt.want))
			}
			for i := range parts {
				forked := i > 0 || tt.before == 0
				if parts[i].Last != tt.want[i].Last || (parts[i].Start.Config == "alpha: 0.25") != forked {
					t.Errorf("part %d: up to v%d, with %q", i, parts[i].Last, parts[i].Start.Config)
				}
			}
		})
	}
}

// The first attempt of a fork may plan another number of steps than the fork. A
// change after that changes the schedule.
func TestRetrainOfAForkWithOtherSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before int // steps trained before the fork
		steps  []int
		want   error
	}{
		{"in the middle", 1, []int{9}, nil},
		{"at the start", 0, []int{9}, nil},
		{"changed again", 1, []int{9, 8}, ErrScheduleChanged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := replaytest.NewStory(t)
			s.Start()
			for step := 1; step <= tt.before; step++ {
				s.Step(step)
			}
			start := events.RunStarted{Attempt: 2, Steps: replaytest.Steps, Build: "test", Code: replaytest.Checkpoint("code", 0), Test: replaytest.Checkpoint("test", 0)}
			fork := start
			fork.Origin = &events.Origin{Run: "r0", Events: 1, Chain: eventlog.Hash{1}.String()}
			s.Root("start-0002", &fork)
			for _, steps := range tt.steps {
				again := start
				again.Attempt, again.Steps = start.Attempt+1, steps
				start = again
				s.Root(fmt.Sprintf("start-%04d", again.Attempt), &again)
			}
			for step := tt.before + 1; step <= replaytest.Steps; step++ {
				s.Step(step)
			}
			_, l := eventlogtest.Run(t, s.Messages)
			var parts []RetrainPart
			same, err := Retrain(t.Context(), l, testTrainer{parts: &parts}, events.RoleCode, "", "", nil)
			if !errors.Is(err, tt.want) {
				t.Fatal(err)
			}
			if tt.want == nil && (same != replaytest.Steps || parts[len(parts)-1].Start.Steps != tt.steps[0]) {
				t.Errorf("%d versions, %+v", same, parts)
			}
		})
	}
}

// A trainer may publish the last version of a part again.
func TestRetrainTakesAVersionAgain(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	updates, err := eventlog.Updates(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	bus := &logBus{log: l, role: updates[0].Role, logged: []*events.PolicyUpdated{updates[0]}}
	m := replaytest.Encode(t, events.New(replaytest.Run, "again", "again", replaytest.Time, updates[0]))
	for range 2 {
		if err := bus.Publish(t.Context(), m); err != nil || bus.same != 1 {
			t.Errorf("%d versions, %v", bus.same, err)
		}
	}
}

// Training again does not need the groups that no version was trained on.
func TestRetrainWithoutUnusedGroups(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	if report, err := l.Compact(t.Context(), 6, nil); err != nil || report.Events != 2 { // the evaluation
		t.Fatalf("%+v, %v", report, err)
	}
	if same, err := Retrain(t.Context(), l, testTrainer{}, events.RoleCode, "", "", nil); err != nil || same != replaytest.Steps {
		t.Errorf("%d versions, %v", same, err)
	}
}
