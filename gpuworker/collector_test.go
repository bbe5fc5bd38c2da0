package gpuworker

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"codea1/events"
)

// at is the position after the i-th message of a list.
func at(i int) events.Position {
	if i == 0 {
		return events.Start
	}
	return events.Position(strconv.Itoa(i))
}

func index(t interface{ Fatal(...any) }, p events.Position) int {
	if p == events.Start {
		return 0
	}
	i, err := strconv.Atoi(string(p))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// taught holds the lessons of a run and the position after each from which a
// trainer can resume.
type taught struct {
	lessons []*lesson
	low     []events.Position
}

// teach applies the messages from index from on, as a trainer does that has trained
// trained steps.
func teach(t interface{ Fatal(...any) }, role events.Role, messages []events.Message, from, trained int) taught {
	var out taught
	perStep := 0
	for i := range messages {
		if e, err := messages[i].Admit(); err == nil && perStep == 0 {
			if plan, ok := events.PlanOf(e.Payload); ok {
				perStep = plan.Groups
			}
		}
	}
	c := newCollector(role, perStep, trained)
	reads := map[events.Type]bool{}
	for _, typ := range events.TrainerStage(role).Consumes {
		reads[typ] = true
	}
	before := at(from)
	for i := from; i < len(messages); i++ {
		m := messages[i]
		if !reads[m.Type] {
			continue
		}
		if e, err := m.Admit(); err == nil { // as the trainer
			if err := c.apply(e.Group, e.Payload, before); err != nil {
				t.Fatal(err)
			}
		}
		before = at(i + 1)
		for {
			step, ok := c.next()
			if !ok {
				break
			}
			out.lessons = append(out.lessons, newLesson(role, step, 3, 0))
			out.low = append(out.low, c.finish(before))
		}
	}
	return out
}

var lessonsEqual = cmp.Options{cmp.AllowUnexported(lesson{}, groupSequences{}), cmpopts.EquateErrors()}

func TestOrderOfArrivalChangesNoLesson(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := SampleRun{
			Name: "r1", Steps: 3, Answers: rapid.IntRange(1, 3).Draw(t, "m"), Suites: rapid.IntRange(1, 3).Draw(t, "n"),
			Groups: rapid.IntRange(1, 8).Draw(t, "groups"), Seed: rapid.Uint64().Draw(t, "seed"),
		}
		role := rapid.SampledFrom([]events.Role{events.RoleCode, events.RoleTest}).Draw(t, "role")
		messages := run.Shuffled(rapid.Uint64().Draw(t, "order"))
		want := teach(t, role, run.Messages(), 0, 0)
		got := teach(t, role, messages, 0, 0)
		if len(want.lessons) != run.Steps {
			t.Fatalf("%d lessons of %d steps", len(want.lessons), run.Steps)
		}
		if d := cmp.Diff(want.lessons, got.lessons, lessonsEqual); d != "" {
			t.Fatal(d)
		}
		// A trainer can resume from each low-water mark.
		for s := range run.Steps {
			rest := teach(t, role, messages, index(t, got.low[s]), s+1)
			if d := cmp.Diff(want.lessons[s+1:], rest.lessons, lessonsEqual); len(want.lessons[s+1:]) > 0 && d != "" {
				t.Fatalf("resumed after step %d: %s", s+1, d)
			}
		}
	})
}

func TestEveryGroupIsConsumedOrReported(t *testing.T) {
	run := SampleRun{Name: "r1", Steps: 4, Groups: 16, Answers: 2, Suites: 2, Seed: 5}
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		for s, l := range teach(t, role, run.Messages(), 0, 0).lessons {
			seen := map[string]int{}
			for _, name := range append(append([]string{}, l.groups...), l.dropped...) {
				seen[name]++
			}
			for slot := range run.Groups {
				name := fmt.Sprintf("s%06d-q%04d", s+1, slot)
				if seen[name] != 1 {
					t.Errorf("%s: group %s is named %d times", role, name, seen[name])
				}
			}
			if len(l.groups) == 0 || len(l.dropped) == 0 {
				t.Errorf("%s, step %d: %d groups consumed, %d dropped: the sample shows nothing", role, s+1, len(l.groups), len(l.dropped))
			}
		}
	}
}

func TestStaleGroupsAreLeftOut(t *testing.T) {
	run := SampleRun{Name: "r1", Steps: 4, Groups: 6, Answers: 2, Suites: 2, Lag: 1, Seed: 1}
	for s, l := range teach(t, events.RoleCode, run.Messages(), 0, 0).lessons {
		// Version 0 samples the first two steps. It is the newest version for
		// step 1.
		if stale := s > 0; stale != (l.stale > 0) || stale != (len(l.groups) == 0) || stale != (l.sequences == 0) {
			t.Errorf("step %d: %d stale, %d consumed", s+1, l.stale, len(l.groups))
		}
	}
}

func TestTrainingSequencesOfAGroup(t *testing.T) {
	completions := func(first int32, n int) []events.Completion {
		var out []events.Completion
		for i := range int32(n) {
			out = append(out, events.Completion{Tokens: events.Int32s{first + i}, LogProbs: events.Float32s{-1}})
		}
		return out
	}
	tokensOf := func(list []Sequence) string {
		var out []string
		for _, e := range list {
			out = append(out, fmt.Sprintf("%d>%d=%v", e.Prompt[0], e.Tokens[0], e.Advantage))
		}
		return strings.Join(out, " ")
	}
	rewards := &events.GroupRewarded{
		TopVar: 1,
		Code:   []events.AnswerReward{{Advantage: 1}, {Advantage: 2, Masked: true}, {Advantage: 3}},
		Test: [][]events.SuiteReward{
			{{Advantage: 4}, {Advantage: 5}},
			{{Advantage: 6}, {Advantage: 7}},
			{{Advantage: 8}, {Advantage: 9}},
		},
	}
	code := &openGroup{rewards: rewards, rollout: &rollout{prompts: []events.Int32s{{100}}, rows: [][]events.Completion{completions(10, 3)}}}
	test := &openGroup{rewards: rewards, rollout: &rollout{
		prompts: []events.Int32s{{200}, {201}, {202}},
		rows:    [][]events.Completion{completions(20, 2), completions(30, 2), completions(40, 2)},
	}}
	for _, c := range []struct {
		name  string
		role  events.Role
		group *openGroup
		want  string
	}{
		{"every answer that is not masked", events.RoleCode, code, "100>10=1 100>12=3"},
		{"the suites of the chosen answer", events.RoleTest, test, "201>30=6 201>31=7"},
	} {
		got, err := sequencesOf(c.role, c.group)
		if err != nil || tokensOf(got.sequences) != c.want {
			t.Errorf("%s: have %s, %v, want %s", c.name, tokensOf(got.sequences), err, c.want)
		}
	}
	rewards.TopVar = -1
	if got, err := sequencesOf(events.RoleTest, test); err != nil || len(got.sequences) != 0 {
		t.Errorf("no answer chosen: %d sequences, %v", len(got.sequences), err)
	}
	// Publishers that contradict each other, or publish numbers without a use.
	for name, change := range map[string]func(a *events.AnswerReward, c *events.Completion){
		"fewer rewards":   func(*events.AnswerReward, *events.Completion) { rewards.Code = rewards.Code[:2] },
		"a log-prob NaN":  func(_ *events.AnswerReward, c *events.Completion) { c.LogProbs[0] = float32(math.NaN()) },
		"a log-prob -Inf": func(_ *events.AnswerReward, c *events.Completion) { c.LogProbs[0] = float32(math.Inf(-1)) },
		"an advantage":    func(a *events.AnswerReward, _ *events.Completion) { a.Advantage = -1e300 },
	} {
		before, prob := slices.Clone(rewards.Code), code.rollout.rows[0][0].LogProbs[0]
		change(&rewards.Code[0], &code.rollout.rows[0][0])
		if _, err := sequencesOf(events.RoleCode, code); err == nil {
			t.Errorf("%s: trained on", name)
		}
		rewards.Code, code.rollout.rows[0][0].LogProbs[0] = before, prob
	}
}

// TestMessagesThatAreNoEvents puts a message without a payload before and after
// every event, under its name. The lessons stay the same.
func TestMessagesThatAreNoEvents(t *testing.T) {
	run := SampleRun{Name: "r1", Steps: 2, Groups: 4, Answers: 2, Suites: 2, Seed: 3}
	messages := run.Messages()
	var hostile []events.Message
	for _, m := range messages {
		broken := m
		broken.Encoding, broken.Data = events.EncodingNone, []byte{0xc1}
		hostile = append(hostile, broken, m, broken)
	}
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		want, got := teach(t, role, messages, 0, 0), teach(t, role, hostile, 0, 0)
		if diff := cmp.Diff(want.lessons, got.lessons, lessonsEqual); diff != "" || len(want.lessons) != 2 {
			t.Errorf("%s: %d lessons: %s", role, len(want.lessons), diff)
		}
	}
}

func TestDropWithoutAPlanSettlesItsSlot(t *testing.T) {
	run := SampleRun{Name: "r1", Steps: 1, Groups: 4, Answers: 2, Suites: 2, Seed: 3}
	// No stage could decode the problem, so the drop has only the plan of the
	// group's name.
	drop := events.New("r1", "s000001-q0000", "stage-0", run.Group(1, 0)[0].Time, &events.GroupDropped{
		Purpose: events.PurposeTrain, Step: 1, Slot: 0, Stage: "code", Reason: events.DropMalformed,
	})
	m, err := events.Encode(drop)
	if err != nil {
		t.Fatal(err)
	}
	messages := []events.Message{m}
	for slot := 1; slot < run.Groups; slot++ {
		messages = append(messages, run.Group(1, slot)...)
	}
	got := teach(t, events.RoleCode, messages, 0, 0)
	if len(got.lessons) != 1 || got.lessons[0].dropped[0] != "s000001-q0000" {
		t.Errorf("%+v", got.lessons)
	}
}

// A drop can claim a slot that the step does not have. It does not belong to the
// step, in whatever order the events arrive.
func TestDropOutsideTheStepSettlesNothing(t *testing.T) {
	run := SampleRun{Name: "r1", Steps: 1, Groups: 4, Answers: 2, Suites: 2, Seed: 3}
	drop := events.New("r1", "s000001-q0007", "stage-0", run.Group(1, 0)[0].Time, &events.GroupDropped{
		Purpose: events.PurposeTrain, Step: 1, Slot: 7, Stage: "code", Reason: events.DropMalformed,
	})
	m, err := events.Encode(drop)
	if err != nil {
		t.Fatal(err)
	}
	var messages []events.Message
	for slot := range run.Groups {
		messages = append(messages, run.Group(1, slot)...)
	}
	want := teach(t, events.RoleCode, messages, 0, 0)
	for at := range len(messages) {
		got := teach(t, events.RoleCode, slices.Insert(slices.Clone(messages), at, m), 0, 0)
		if diff := cmp.Diff(want.lessons, got.lessons, lessonsEqual); diff != "" {
			t.Fatalf("after %d messages (-without +with it):\n%s", at, diff)
		}
	}
}

// TestPlansOfAnotherCurriculum adds groups that the curriculum did not pose, and
// plans that contradict it, before and after each message. The lessons stay.
func TestPlansOfAnotherCurriculum(t *testing.T) {
	run := SampleRun{Name: "r1", Steps: 2, Groups: 3, Answers: 2, Suites: 2, Seed: 3}
	messages := run.Messages()
	more := run
	more.Groups = 9
	foreign := slices.Concat(more.Group(1, 3), more.Group(1, 8), more.Group(2, 5), more.Group(7, 0))
	for _, role := range []events.Role{events.RoleCode, events.RoleTest} {
		want := teach(t, role, messages, 0, 0)
		for at := range messages {
			got := teach(t, role, slices.Insert(slices.Clone(messages), at+1, foreign...), 0, 0)
			if diff := cmp.Diff(want.lessons, got.lessons, lessonsEqual); diff != "" || len(want.lessons) != run.Steps {
				t.Fatalf("%s, after %d messages (-without +with them):\n%s", role, at+1, diff)
			}
		}
		// Plans of 9 groups under the names of the run's own groups.
		if got := teach(t, role, append(run.Group(1, 0), append(more.Group(1, 1), run.Group(1, 2)...)...), 0, 0); len(got.lessons) != 1 {
			t.Errorf("%s: a plan of another size ends step 1 %d times", role, len(got.lessons))
		}
	}
}

// TestGroupsOfAnotherTemperature trains on the groups of the first temperature.
func TestGroupsOfAnotherTemperature(t *testing.T) {
	run := SampleRun{Name: "r1", Steps: 1, Groups: 4, Answers: 2, Suites: 2, Seed: 11}
	c := newCollector(events.RoleCode, run.Groups, 0)
	for _, m := range run.Messages() {
		e, err := m.Admit()
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := e.Payload.(*events.GroupRewarded); ok && r.Plan.Slot == 2 {
			r.Plan.Temperature = 50
		}
		if err := c.apply(e.Group, e.Payload, events.Start); err != nil {
			t.Fatal(err)
		}
	}
	step, ok := c.next()
	if l := newLesson(events.RoleCode, step, 3, 0); !ok || l.temperature != 1 || len(l.unusable) != 1 || !slices.Contains(l.dropped, "s000001-q0002") {
		t.Errorf("%v %+v", ok, l)
	}
}
