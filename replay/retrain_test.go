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
type testTrainer struct {
	wrong int
	heard *[]RetrainPart // takes the parts down, unless nil
}

func (tr testTrainer) Retrain(ctx context.Context, job RetrainJob) error {
	if tr.heard != nil {
		*tr.heard = job.Parts
	}
	reader, err := job.Bus.Read(ctx, events.ReadConfig{Run: job.Run, Types: []events.Type{events.TypeGroupRewarded}})
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	var position events.Position
	for step := 1; step <= job.Parts[len(job.Parts)-1].Last; step++ {
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

// stoppedTrainer is a trainer that is interrupted: it has no error of its own.
type stoppedTrainer struct{ stop func() }

func (s stoppedTrainer) Retrain(context.Context, RetrainJob) error {
	s.stop()
	return nil
}

func TestRetrainInterrupted(t *testing.T) {
	t.Parallel()
	_, l := storyLog(t, tell(t))
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := l.Retrain(ctx, stoppedTrainer{cancel}, events.RoleCode, "", "", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := l.Retrain(t.Context(), stoppedTrainer{func() {}}, events.RoleCode, "", "", nil); err == nil || !strings.Contains(err.Error(), "trained 0 of 2 versions") {
		t.Errorf("stopped by itself: %v", err)
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

// What a fork shares is trained again as its origin trained it, and what came
// after as the fork says it did, whatever that changes.
func TestRetrainOfAFork(t *testing.T) {
	t.Parallel()
	forked := func(config string) *events.RunStarted {
		return &events.RunStarted{
			Attempt: 2, Steps: 7, Build: "test", Config: config, Code: checkpoint("code", 0), Test: checkpoint("test", 0),
			Origin: &events.Origin{Run: "r0", Events: 1, Chain: Hash{1}.String()},
		}
	}
	for _, tt := range []struct {
		name   string
		before int // steps trained before the fork
		want   []RetrainPart
	}{
		{"in the middle", 1, []RetrainPart{{Last: 1}, {Last: storySteps}}},
		{"at the start", 0, []RetrainPart{{Last: storySteps}}},
		{"at the end", storySteps, []RetrainPart{{Last: storySteps}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStory(t)
			s.start()
			for step := 1; step <= tt.before; step++ {
				s.step(step)
			}
			s.root("start-0002", forked("alpha: 0.25"))
			for step := tt.before + 1; step <= storySteps; step++ {
				s.step(step)
			}
			_, l := storyLog(t, s.messages)
			var parts []RetrainPart
			if _, err := l.Retrain(t.Context(), testTrainer{heard: &parts}, events.RoleCode, "", "", nil); err != nil {
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

// A fork that was made with another number of steps hears of it when it is gone
// on with: nothing was trained by then. Later it is another schedule.
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
			s := newStory(t)
			s.start()
			for step := 1; step <= tt.before; step++ {
				s.step(step)
			}
			start := events.RunStarted{Attempt: 2, Steps: storySteps, Build: "test", Code: checkpoint("code", 0), Test: checkpoint("test", 0)}
			fork := start
			fork.Origin = &events.Origin{Run: "r0", Events: 1, Chain: Hash{1}.String()}
			s.root("start-0002", &fork)
			for _, steps := range tt.steps {
				again := start
				again.Attempt, again.Steps = start.Attempt+1, steps
				start = again
				s.root(fmt.Sprintf("start-%04d", again.Attempt), &again)
			}
			for step := tt.before + 1; step <= storySteps; step++ {
				s.step(step)
			}
			_, l := storyLog(t, s.messages)
			var parts []RetrainPart
			same, err := l.Retrain(t.Context(), testTrainer{heard: &parts}, events.RoleCode, "", "", nil)
			if !errors.Is(err, tt.want) {
				t.Fatal(err)
			}
			if tt.want == nil && (same != storySteps || parts[len(parts)-1].Start.Steps != tt.steps[0]) {
				t.Errorf("%d versions, %+v", same, parts)
			}
		})
	}
}

// A trainer that goes on behind a part says once more how far it has come.
func TestRetrainTakesAVersionAgain(t *testing.T) {
	t.Parallel()
	_, l := storyLog(t, tell(t))
	updates, err := l.Updates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bus := &logBus{log: l, role: updates[0].Role, logged: []*events.PolicyUpdated{updates[0]}}
	m := encode(t, events.New(testRun, "again", "again", testTime, updates[0]))
	for range 2 {
		if err := bus.Publish(t.Context(), m); err != nil || bus.same != 1 {
			t.Errorf("%d versions, %v", bus.same, err)
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
