package curriculum

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
)

func TestEndMakesTheStepUnderWayTheLast(t *testing.T) {
	cur := mustNew(t, config(9, 2, 0), 4, evaluation(2))
	expect := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(append([]string{}, want...), append([]string{}, ids(cur.Due())...)); diff != "" {
			t.Fatalf("due (-want +got):\n%s", diff)
		}
	}
	expect("e-step000000-0000", "e-step000000-0001")
	cur.ObserveEnded("e-step000000-0000")
	cur.ObserveEnded("e-step000000-0001")
	expect("s000001-q0000", "s000001-q0001")
	cur.End()
	expect() // the step continues
	trained(cur, 1)
	cur.End() // a second call changes nothing
	expect("e-step000001-0000", "e-step000001-0001")
	cur.ObserveEnded("e-step000001-0000")
	expect()
	cur.ObserveEnded("e-step000001-0001")
	expect()
	if !cur.Finished() {
		t.Error("not finished after the evaluation")
	}
}

// A run trains every step that it posed before End, with staleness also steps
// ahead of the newest version.
func TestEndKeepsStepsThatHaveBegun(t *testing.T) {
	cur := mustNew(t, config(9, 2, 2), 4, nil)
	if got := len(cur.Due()); got != 6 {
		t.Fatalf("%d groups posed, want those of three steps", got)
	}
	// A restarted curriculum knows what has begun before it has posed anything.
	again := mustNew(t, config(9, 2, 2), 4, nil)
	again.ObservePosed("s000001-q0000")
	again.ObservePosed("s000002-q0001")
	for name, c := range map[string]*Curriculum{"running": cur, "restarted": again} {
		c.End()
		last := map[string]int{"running": 3, "restarted": 2}[name]
		for version := 1; version <= last; version++ {
			if c.Finished() {
				t.Errorf("%s: finished after %d steps", name, version-1)
			}
			trained(c, version)
			for _, p := range c.Due() {
				if p.Plan.Step > last {
					t.Errorf("%s: step %d posed, the last was %d", name, p.Plan.Step, last)
				}
			}
		}
		if !c.Finished() {
			t.Errorf("%s: not finished", name)
		}
	}
}

var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// run simulates bus, log, models and clock for a Service.
type run struct {
	t          interface{ Fatal(...any) }
	log        []events.Message
	now        time.Time
	step, eval time.Duration
	versions   int
}

func (r *run) Publish(_ context.Context, messages ...events.Message) error {
	r.log = append(r.log, messages...)
	return nil
}

func (r *run) append(s *Service, group string, payload events.Payload) {
	m, err := events.Encode(events.New("r", group, "test-0", r.now, payload))
	if err != nil {
		r.t.Fatal(err)
	}
	r.log = append(r.log, m)
	if err := s.OnAppend(context.Background(), []events.Message{m}); err != nil {
		r.t.Fatal(err)
	}
}

// attempt runs until the curriculum has finished or the given number of steps
// and evaluations is done. It returns its duration and the steps it trained.
func (r *run) attempt(number int, budget time.Duration, most int) (took time.Duration, steps int, finished bool) {
	began, before := r.now, r.versions
	s := &Service{
		Curriculum: mustNew(r.t, config(40, 2, 0), 6, evaluation(2)), Bus: r, Run: "r", Source: "curriculum-0",
		Now: func() time.Time { return r.now }, Budget: budget,
	}
	if err := s.Observe(slices.Clone(r.log)); err != nil {
		r.t.Fatal(err)
	}
	c := events.Checkpoint{URI: "file:///c", SHA256: strings.Repeat("0", 64)}
	r.append(s, "start-"+string(rune('0'+number)), &events.RunStarted{Attempt: number, Code: c, Test: c})
	for ; most > 0 && !s.Curriculum.Finished(); most-- {
		if tag, open := r.openEval(s.Curriculum); open {
			r.now = r.now.Add(r.eval)
			for slot := range 2 {
				plan := events.Plan{Purpose: events.PurposeEval, Tag: tag, Slot: slot, Groups: 2, Answers: 1, Temperature: 1}
				r.append(s, plan.GroupID(), &events.EvalScored{Plan: plan, ProblemID: "p"})
			}
			continue
		}
		if group := r.unscored(); group != "" {
			r.t.Fatal("step " + Tag(r.versions+1) + " is trained while " + group + " is open")
		}
		r.now = r.now.Add(r.step)
		r.versions++
		for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
			r.append(s, string(role)+Tag(r.versions), &events.PolicyUpdated{Role: role, Version: r.versions, Step: r.versions, Checkpoint: c})
		}
	}
	return r.now.Sub(began), r.versions - before, s.Curriculum.Finished()
}

func (r *run) openEval(c *Curriculum) (tag string, open bool) {
	tag = Tag(r.versions)
	for _, id := range c.evals[tag] {
		if !c.ended[id] {
			return tag, true
		}
	}
	return tag, false
}

// unscored returns a group of an evaluation that was posed and not scored.
func (r *run) unscored() string {
	open := map[string]bool{}
	for _, m := range r.log {
		switch {
		case m.Type == events.TypeProblemPosed && strings.HasPrefix(m.Group, "e-"):
			open[m.Group] = true
		case m.Type == events.TypeEvalScored:
			delete(open, m.Group)
		}
	}
	for group := range open {
		return group
	}
	return ""
}

// A run with a budget trains as many steps as fit with the evaluation at the
// end, and at least one. Attempts, killed or not, add up to the same run as an
// undisturbed attempt.
func TestBudget(t *testing.T) {
	undisturbed := &run{t: t, now: start, step: time.Second, eval: time.Second}
	undisturbed.attempt(1, 0, 1000)
	want := trainingGroups(undisturbed.log)
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.IntRange(1, 20)
		r := &run{
			t: t, now: start,
			step: time.Duration(seconds.Draw(t, "step")) * time.Second, eval: time.Duration(seconds.Draw(t, "eval")) * time.Second,
		}
		for attempt := 1; r.versions < 40 && attempt < 9; attempt++ {
			budget := time.Duration(rapid.IntRange(0, 300).Draw(t, "budget")) * time.Second
			killed := rapid.IntRange(1, 30).Draw(t, "steps and evaluations before a kill")
			took, steps, finished := r.attempt(attempt, budget, killed)
			r.now = r.now.Add(time.Hour) // nothing runs
			if !finished {
				continue
			}
			if steps == 0 && r.versions < 40 {
				t.Fatalf("attempt %d trained no step", attempt)
			}
			if steps > 1 && budget > 0 && took > budget {
				t.Fatalf("attempt %d took %v of %v for %d steps", attempt, took, budget, steps)
			}
			if r.versions < 40 && took+r.step <= budget {
				t.Fatalf("attempt %d ended after %v of %v, a step takes %v", attempt, took, budget, r.step)
			}
			if r.versions < 40 && !posedAny(r.log, Tag(r.versions)) {
				t.Fatalf("attempt %d ended after step %d without an evaluation", attempt, r.versions)
			}
		}
		for r.versions < 40 {
			r.attempt(9, 0, 1000)
		}
		if diff := cmp.Diff(want, trainingGroups(r.log)); diff != "" {
			t.Fatalf("training groups (-undisturbed +attempts):\n%s", diff)
		}
	})
}

func posedAny(log []events.Message, tag string) bool {
	return slices.ContainsFunc(log, func(m events.Message) bool { return m.Group == firstOf(tag) })
}

func trainingGroups(log []events.Message) (groups []string) {
	for _, m := range log {
		if m.Type == events.TypeProblemPosed && strings.HasPrefix(m.Group, "s") {
			groups = append(groups, m.Group)
		}
	}
	return groups
}
