package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"codea1/events"
	"codea1/replay/mistakes"
)

func at(e Event) *Event {
	e.Type = e.Payload.EventType()
	return &e
}

func posedEvent(seq uint64, group string) *Event {
	return &Event{Seq: seq, Type: events.TypeProblemPosed, Group: group}
}

func updated(seq uint64, role events.Role, step int, groups ...string) *Event {
	return at(Event{Seq: seq, Group: fmt.Sprintf("%s-v%06d", role, step), Payload: &events.PolicyUpdated{
		Role: role, Version: step, Step: step, Groups: groups, Dropped: []string{"s000001-q0001"},
		Metrics:    events.PolicyMetrics{Sequences: 2, Tokens: 20, Loss: 0.25, KL: math.NaN()},
		Checkpoint: events.Checkpoint{URI: "file:///" + string(role), SHA256: "ab"},
	}})
}

// TestApply applies the beginning of a run: a step with one rewarded and one
// dropped group, an evaluation, and an unfinished second step.
func TestApply(t *testing.T) {
	rewarded := &events.GroupRewarded{
		Code: []events.AnswerReward{{Reward: 0.5, Loads: true}, {Masked: true}, {Reward: 0}},
		Test: [][]events.SuiteReward{{{Reward: 1, PassNew: 0.5, Valid: 3, Invalid: 1}}, {{Masked: true}}, {{Reward: 0.5, PassNew: 0, Valid: 1}}},
	}
	entry := func(call string, before, count int) mistakes.Change {
		return mistakes.Change{Entry: mistakes.Entry{Call: call, Count: count}, Before: before}
	}
	s := New()
	for _, e := range []*Event{
		at(Event{Seq: 1, Group: "start-0001", Payload: &events.RunStarted{Attempt: 1, Steps: 2, Code: events.Checkpoint{URI: "c"}, Test: events.Checkpoint{URI: "t"}}}),
		posedEvent(2, "e-step000000-0000"),
		posedEvent(3, "s000001-q0000"),
		posedEvent(4, "s000001-q0001"),
		at(Event{Seq: 5, Group: "e-step000000-0000", Payload: &events.EvalScored{
			Correct: []bool{true, false}, Suites: 2, Wanted: 4, Stated: 4, Right: 3, Defective: 1, Found: 1,
			Inputs: &events.InputCounts{Kept: 4, Trivial: 2, Reached: 1},
		}}),
		{Seq: 6, Type: events.TypeCodeSampled},
		at(Event{Seq: 7, Group: "s000001-q0000", Payload: rewarded, Changes: []mistakes.Change{entry("f(1)", 2, 0), entry("f(2)", 3, 2), entry("f(3)", 0, 4)}}),
		at(Event{Seq: 8, Group: "s000001-q0001", Payload: &events.GroupDropped{}}),
		at(Event{Seq: 9, Group: "s000001-q0001", Payload: rewarded}), // counts in the metrics; the group has already ended
		updated(10, events.RoleCode, 1, "s000001-q0000"),
		posedEvent(11, "s000002-q0000"),
		updated(12, events.RoleTest, 1, "s000001-q0000"),
		posedEvent(13, "s000001-q0002"),                                  // the cursor ignores a trained step
		{Seq: 14, Type: events.TypePolicyUpdated, Group: "code-v000002"}, // cannot be decoded
		at(Event{Seq: 15, Group: "end-0001", Payload: &events.RunFinished{Reason: events.RunStopped}}),
	} {
		s.Apply(e)
	}
	wantCursor := Cursor{
		Attempt: 1, Planned: 2, Finished: "stopped", Code: 1, Test: 1,
		Steps:       map[int]map[string]Status{2: {"s000002-q0000": Posed}},
		Evaluations: map[string]map[string]Status{"step000000": {"e-step000000-0000": Scored}},
	}
	if diff := cmp.Diff(wantCursor, s.Cursor); diff != "" {
		t.Errorf("cursor (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"s000002-q0000"}, s.Cursor.Open()); diff != "" || s.Cursor.Trained() != 1 {
		t.Errorf("trained %d, open (-want +got):\n%s", s.Cursor.Trained(), diff)
	}
	step := *s.Metrics.Steps[1]
	if !math.IsNaN(float64(step.CodeUpdate.KL)) {
		t.Errorf("KL %v", step.CodeUpdate.KL)
	}
	step.CodeUpdate.KL, step.TestUpdate.KL = 0, 0
	update := Update{Version: 1, Groups: 1, Sequences: 2, Tokens: 20, Loss: 0.25}
	wantStep := Step{
		Posed: 3, Rewarded: 2, Dropped: 1, Loads: 2, Kept: 8, WrongOrDiscarded: 2, Entered: 1, Left: 1, Rose: 4, Fell: 3,
		Code: Reward{Mean{4, 1}, 2}, Test: Reward{Mean{4, 3}, 2}, Passed: Mean{4, 1}, CodeUpdate: update, TestUpdate: update,
	}
	if diff := cmp.Diff(wantStep, step); diff != "" {
		t.Errorf("step 1 (-want +got):\n%s", diff)
	}
	wantEvaluation := Evaluation{
		Posed: 1, Scored: 1, Answers: 2, Correct: 1, Suites: 2, Wanted: 4, Stated: 4, Right: 3, Defective: 1, Found: 1,
		Kept: 4, Trivial: 2, Searched: 1, Reached: 1,
	}
	if diff := cmp.Diff(wantEvaluation, *s.Metrics.Evaluations["step000000"]); diff != "" {
		t.Errorf("evaluation (-want +got):\n%s", diff)
	}
	if s.Metrics.Events[events.TypeProblemPosed] != 5 || s.Metrics.Events[events.TypePolicyUpdated] != 3 {
		t.Errorf("events %v", s.Metrics.Events)
	}
	wantCheckpoints := Checkpoints{
		{Role: "code", URI: "c", Seq: 1}, {Role: "test", URI: "t", Seq: 1},
		{Role: "code", Version: 1, Step: 1, URI: "file:///code", SHA256: "ab", Groups: 1, LeftOut: 1, Seq: 10},
		{Role: "test", Version: 1, Step: 1, URI: "file:///test", SHA256: "ab", Groups: 1, LeftOut: 1, Seq: 12},
	}
	if diff := cmp.Diff(wantCheckpoints, s.Checkpoints); diff != "" {
		t.Errorf("checkpoints (-want +got):\n%s", diff)
	}
	if newest := s.Checkpoints.Newest(events.RoleTest); newest == nil || newest.Seq != 12 {
		t.Errorf("newest %+v", newest)
	}
	if raw, err := json.Marshal(s); err != nil || !bytes.Contains(raw, []byte(`"kl":null`)) {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestNames(t *testing.T) {
	train := events.Plan{Purpose: events.PurposeTrain, Step: 12, Slot: 3}
	if step, ok := TrainingStep(train.GroupID()); !ok || step != 12 {
		t.Errorf("%s: step %d, %t", train.GroupID(), step, ok)
	}
	eval := events.Plan{Purpose: events.PurposeEval, Tag: "be-fore", Slot: 3}
	if tag, ok := evaluationTag(eval.GroupID()); !ok || tag != "be-fore" {
		t.Errorf("%s: tag %q, %t", eval.GroupID(), tag, ok)
	}
	for _, name := range []string{"", "s", "e", "e-", "e--0", "s1", "s-q1", "s0-q1", "1-q1", "start-0001", "code-v000001", eval.GroupID()} {
		if step, ok := TrainingStep(name); ok {
			t.Errorf("%q: step %d", name, step)
		}
	}
	for _, name := range []string{"", "e", "e-", "e--0", "e-0", train.GroupID()} {
		if tag, ok := evaluationTag(name); ok {
			t.Errorf("%q: tag %q", name, tag)
		}
	}
}

// drawn returns a random event of a small run.
func drawn(rt *rapid.T, seq uint64) *Event {
	group := events.Plan{Purpose: events.PurposeTrain, Step: rapid.IntRange(1, 4).Draw(rt, "step"), Slot: rapid.IntRange(0, 2).Draw(rt, "slot")}
	if rapid.Bool().Draw(rt, "eval") {
		group = events.Plan{Purpose: events.PurposeEval, Tag: fmt.Sprintf("step%06d", group.Step), Slot: group.Slot}
	}
	e := Event{Seq: seq, Group: group.GroupID()}
	reward := rapid.Float64().Draw(rt, "reward")
	switch rapid.IntRange(0, 6).Draw(rt, "type") {
	case 0:
		return posedEvent(seq, e.Group)
	case 1:
		e.Payload = &events.GroupRewarded{Code: []events.AnswerReward{{Reward: reward, Loads: true}}, Test: [][]events.SuiteReward{{{Reward: -reward, Valid: 2}}}}
		e.Changes = []mistakes.Change{{Entry: mistakes.Entry{Count: rapid.IntRange(0, 3).Draw(rt, "count")}, Before: rapid.IntRange(0, 3).Draw(rt, "before")}}
	case 2:
		e.Payload = &events.GroupDropped{}
	case 3:
		e.Payload = &events.EvalScored{Correct: []bool{true}, Suites: 3}
	case 4:
		return updated(seq, events.Role(rapid.SampledFrom([]string{"code", "test"}).Draw(rt, "role")), group.Step+1, e.Group)
	case 5:
		e.Payload = &events.RunStarted{Attempt: 1, Steps: 4, Code: events.Checkpoint{URI: "c"}}
	default:
		e.Payload = &events.RunFinished{Reason: events.RunCompleted}
	}
	return at(e)
}

// A decoded state equals the encoded one, also after more events.
func TestDecodeGoesOn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := New()
		n := uint64(rapid.IntRange(0, 30).Draw(rt, "events"))
		for seq := range n {
			s.Apply(drawn(rt, seq+1))
		}
		again, err := Decode(s.Encode())
		if err != nil {
			rt.Fatal(err)
		}
		for seq := n; seq < n+5; seq++ {
			e := drawn(rt, seq+1)
			s.Apply(e)
			again.Apply(e)
		}
		if !bytes.Equal(s.Encode(), again.Encode()) {
			rt.Fatalf("%+v, read back: %+v", s, again)
		}
	})
}

func FuzzDecode(f *testing.F) {
	s := New()
	f.Add(s.Encode())
	s.Apply(posedEvent(1, "s000001-q0000"))
	s.Apply(posedEvent(2, "e-x-0000"))
	s.Apply(updated(3, events.RoleCode, 1))
	f.Add(s.Encode())
	f.Add([]byte(`{"Cursor":null}`))
	f.Add([]byte(strings.ReplaceAll(string(s.Encode()), "0", "1e400")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Decode(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(raw, s.Encode()) {
			t.Fatal("other bytes")
		}
	})
}
