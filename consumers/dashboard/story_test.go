package dashboard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"codea1/events"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// script makes the events of a run in order, at the time at.
type script struct {
	at time.Time
}

func (s *script) event(group string, payload events.Payload) *events.Event {
	e := events.New("r1", group, "test-0", s.at, payload)
	if _, follows := events.Causes()[e.Type]; follows {
		e = events.Caused(events.New("r1", group, "test-0", s.at, &events.ProblemPosed{}), "test-0", s.at, payload)
		e.CausationHash = strings.Repeat("ab", 32)
	}
	return e
}

func (s *script) started(attempt, steps int) *events.Event {
	c := events.Checkpoint{URI: "file:///c", SHA256: strings.Repeat("0", 64)}
	return s.event(fmt.Sprintf("start-%04d", attempt), &events.RunStarted{
		Attempt: attempt, Steps: steps, Build: "test", ProblemSet: "builtin:train", Problems: 2000, Code: c, Test: c,
	})
}

func (s *script) finished(steps int, reason string) *events.Event {
	return s.event("end-0001", &events.RunFinished{Attempt: 1, Steps: steps, Reason: reason})
}

// rewarded makes a group of two answers with two suites each: the second
// answer gets no reward and does not load.
func (s *script) rewarded(step, slot, groups int, code, test float64, deltas ...events.BookDelta) *events.Event {
	plan := events.Plan{
		Purpose: events.PurposeTrain, Step: step, Slot: slot, Groups: groups, Answers: 2, Suites: 2, Tests: 4, Temperature: 1,
	}
	suite := events.SuiteReward{Reward: test, PassNew: 0.75, FailNew: 0.25, PassHist: 0.5, FailHist: 0.5, Valid: 3, Invalid: 1}
	broken := events.SuiteReward{Reward: test, Valid: 1, Invalid: 3}
	return s.event(plan.GroupID(), &events.GroupRewarded{
		Plan: plan, ProblemID: fmt.Sprintf("p%d", slot), Recipe: "a1", Alpha: 0.5, TopVar: 0, Deltas: deltas,
		Code: []events.AnswerReward{{Reward: code, Loads: true}, {}},
		Test: [][]events.SuiteReward{{suite, suite}, {broken, {Masked: true}}},
	})
}

func (s *script) dropped(purpose events.Purpose, group string, step, slot, groups int, reason events.DropReason) *events.Event {
	return s.event(group, &events.GroupDropped{
		Purpose: purpose, Step: step, Slot: slot, Groups: groups, Stage: "execution", Reason: reason, Detail: "the sandbox died",
	})
}

func (s *script) updated(role events.Role, step int) *events.Event {
	return s.event(fmt.Sprintf("%s-v%06d", role, step), &events.PolicyUpdated{
		Role: role, Version: step, Step: step, Checkpoint: events.Checkpoint{URI: fmt.Sprintf("file:///r/checkpoints/%s/v%06d", role, step), SHA256: strings.Repeat("0", 64)},
		Metrics: events.PolicyMetrics{Loss: 0.125, KL: 0.001, Entropy: 1.5, GradNorm: 0.5, LearningRate: 1e-6, Seconds: 2},
	})
}

func (s *script) scored(tag string, step, slot, groups int, scored events.EvalScored) *events.Event {
	scored.Plan = events.Plan{
		Purpose: events.PurposeEval, Tag: tag, Step: step, Slot: slot, Groups: groups, Answers: 4, Suites: 4, Tests: 4, Temperature: 1,
	}
	scored.ProblemID = fmt.Sprintf("h%d", slot)
	return s.event(scored.Plan.GroupID(), &scored)
}

func (s *script) beat(source string, n int, handled, pending int64) *events.Event {
	e := s.event(fmt.Sprintf("%s-%d", source, n), &events.StageHeartbeat{
		Stage: strings.TrimRight(source, "-0123456789"), Beat: n, Handled: handled, Pending: pending, InFlight: 2, Busy: 0.5,
	})
	e.Source = source
	return e
}

// TestStory applies the events of a run and shows the result of each. See
// testdata/run; `go test -rewrite` rewrites the results.
func TestStory(t *testing.T) {
	state := NewState()
	s := &script{at: noon}
	datadriven.RunTest(t, "testdata/run", func(t *testing.T, d *datadriven.TestData) string {
		var step, slot, groups, attempt, n, steps int
		var handled, pending int64
		var after, code, test, correct, tests, defects, inputs, book, tag, role, reason, group, source string
		for name, to := range map[string]any{
			"step": &step, "slot": &slot, "groups": &groups, "attempt": &attempt, "n": &n, "steps": &steps,
			"handled": &handled, "pending": &pending, "after": &after, "code": &code, "test": &test, "correct": &correct,
			"tests": &tests, "defects": &defects, "inputs": &inputs, "book": &book, "tag": &tag, "role": &role, "reason": &reason,
			"group": &group, "source": &source,
		} {
			d.MaybeScanArgs(t, name, to)
		}
		if after != "" {
			wait, err := time.ParseDuration(after)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			s.at = s.at.Add(wait)
		}
		var e *events.Event
		switch d.Cmd {
		case "started":
			e = s.started(attempt, steps)
		case "finished":
			e = s.finished(steps, reason)
		case "posed":
			e = s.event(group, &events.ProblemPosed{})
			e.Payload = nil // a follower does not decode it
		case "rewarded":
			e = s.rewarded(step, slot, groups, parse(t, code), parse(t, test), deltas(t, book)...)
		case "dropped":
			purpose := events.PurposeTrain
			if strings.HasPrefix(group, "e-") {
				purpose = events.PurposeEval
			}
			e = s.dropped(purpose, group, step, slot, groups, events.DropReason(reason))
		case "updated":
			e = s.updated(events.Role(role), step)
		case "scored":
			scored := events.EvalScored{}
			for _, c := range correct {
				scored.Correct = append(scored.Correct, c == '+')
			}
			if tests != "" {
				mustScan(t, tests, "%d/%d", &scored.Right, &scored.Stated)
				mustScan(t, defects, "%d/%d", &scored.Found, &scored.Defective)
				scored.Suites = max(4, scored.Defective)
			}
			if inputs != "" {
				scored.Inputs = new(events.InputCounts)
				mustScan(t, inputs, "%d+%d/%d", &scored.Inputs.Reached, &scored.Inputs.Trivial, &scored.Inputs.Kept)
			}
			e = s.scored(tag, step, slot, groups, scored)
		case "beat":
			e = s.beat(source, n, handled, pending)
		case "table":
			return Table(state, "runs/r1")
		case "snapshot":
			snapshot := state.Snapshot()
			snapshot.Stages = slices.DeleteFunc(snapshot.Stages, func(v stageView) bool { return v.Replicas == 0 })
			out, err := json.MarshalIndent(snapshot, "", "  ")
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return string(out) + "\n"
		default:
			d.Fatalf(t, "unknown command %s", d.Cmd)
		}
		if e.Payload != nil {
			if _, err := events.Encode(e); err != nil {
				d.Fatalf(t, "%v", err)
			}
		}
		state.Apply(e)
		return describe(state) + "\n"
	})
}

func parse(t *testing.T, s string) float64 {
	var x float64
	mustScan(t, s, "%g", &x)
	return x
}

func mustScan(t *testing.T, text, format string, to ...any) {
	t.Helper()
	if _, err := fmt.Sscanf(text, format, to...); err != nil {
		t.Fatalf("%q: want %s: %v", text, format, err)
	}
}

// deltas reads changes as -1:a,+2:b.
func deltas(t *testing.T, text string) (out []events.BookDelta) {
	for _, word := range strings.Split(text, ";") {
		if word == "" {
			continue
		}
		change, call, _ := strings.Cut(word, ":")
		d := events.BookDelta{Call: call, Expected: "1"}
		mustScan(t, change, "%d", &d.Change)
		out = append(out, d)
	}
	return out
}
