package audit

import (
	"fmt"
	"strings"
	"testing"

	"codea1/events"
	"codea1/replay/eventlog/eventlogtest"
	"codea1/replay/internal/replaytest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	_, l := eventlogtest.Run(t, replaytest.Tell(t))
	got, err := Check(t.Context(), l, replaytest.Recipes{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Found != 0 || got.Rewarded != 4 || got.Scored != 1 || got.Recomputed != 4 || got.Versions != 4 || got.Open != 0 {
		t.Fatalf("a run as it should be: %+v", got)
	}
}

// TestCheckFinds makes runs with contradictions.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		want string
		tell func(s *replaytest.Story)
	}{
		{"a reward that does not follow", "another reward follows from its verdicts: answer 1", func(s *replaytest.Story) {
			e := s.Executed(s.Plan(events.PurposeTrain, 1, 0))
			r := replaytest.PassShare(e.Payload.(*events.CodeExecuted), 0.5)
			r.Code[1].Reward += 1e-6
			s.Then(e, r)
		}},
		{"a reward of no recipe", "cannot be computed from its verdicts: unknown recipe", func(s *replaytest.Story) {
			e := s.Executed(s.Plan(events.PurposeTrain, 1, 0))
			r := replaytest.PassShare(e.Payload.(*events.CodeExecuted), 0.5)
			r.Recipe = "gone"
			s.Then(e, r)
		}},
		{"an effect without its cause", "is not in the log", func(s *replaytest.Story) {
			s.Group(s.Plan(events.PurposeTrain, 1, 0))
			s.Messages = append(s.Messages[:2], s.Messages[3:]...)
		}},
		{"an effect before its cause", "is not in the log before it", func(s *replaytest.Story) {
			s.Group(s.Plan(events.PurposeTrain, 1, 0))
			s.Messages[2], s.Messages[3] = s.Messages[3], s.Messages[2]
		}},
		{"a cause of another type", "is not code.executed", func(s *replaytest.Story) {
			p := replaytest.Posed(0, "What is f?")
			s.Add(p)
			s.Then(p, replaytest.Rewarded(p).Payload)
		}},
		{"an ID that does not follow", "does not follow from its cause", func(s *replaytest.Story) {
			s.Group(s.Plan(events.PurposeTrain, 1, 0))
			s.Messages[2].ID = strings.Repeat("0", 32)
		}},
		{"a group that ends twice", "ends twice", func(s *replaytest.Story) {
			e := s.Executed(s.Plan(events.PurposeTrain, 1, 0))
			s.Then(e, replaytest.PassShare(e.Payload.(*events.CodeExecuted), 0.5))
			s.Then(e, &events.GroupDropped{Purpose: events.PurposeTrain, Step: 1, Groups: 2, Stage: "rewards", Reason: events.DropRetries})
		}},
		{"a group that never ends", "1 of its groups have not ended, among them s000001-q0000", func(s *replaytest.Story) {
			s.Executed(s.Plan(events.PurposeTrain, 1, 0))
			s.Finish()
		}},
		{"a step trained twice", "code v1 follows v1", func(s *replaytest.Story) {
			s.Step(1)
			e := s.Update(events.RoleCode, 1, nil)
			s.Messages[len(s.Messages)-1].Group = "again"
			s.Messages[len(s.Messages)-1].ID = events.New(replaytest.Run, "again", "x", replaytest.Time, e.Payload).ID
		}},
		{"a version left out", "code v2 follows v0", func(s *replaytest.Story) { s.Update(events.RoleCode, 2, nil) }},
		{"a group left out of training", "accounts for 1 of the 2 groups of step 1", func(s *replaytest.Story) {
			group := s.Group(s.Plan(events.PurposeTrain, 1, 0))
			s.Group(s.Plan(events.PurposeTrain, 1, 1))
			s.Update(events.RoleCode, 1, []string{group})
		}},
		{"a group trained twice", "trained twice on group s000001-q0000", func(s *replaytest.Story) {
			group := s.Group(s.Plan(events.PurposeTrain, 1, 0))
			s.Update(events.RoleCode, 1, []string{group, group})
		}},
		{"a group trained before its reward", "which step 1 had not rewarded", func(s *replaytest.Story) {
			e := s.Executed(s.Plan(events.PurposeTrain, 1, 0))
			s.Update(events.RoleCode, 1, []string{e.Group})
		}},
		{"another order", "canonical order", func(s *replaytest.Story) {
			a, b := s.Group(s.Plan(events.PurposeTrain, 1, 0)), s.Group(s.Plan(events.PurposeTrain, 1, 1))
			s.Update(events.RoleCode, 1, []string{b, a})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := replaytest.NewStory(t)
			tt.tell(s)
			_, l := eventlogtest.Run(t, s.Messages)
			got, err := Check(t.Context(), l, replaytest.Recipes{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text := fmt.Sprint(got.Findings); got.Found == 0 || !strings.Contains(text, tt.want) {
				t.Fatalf("found %s, want %q", text, tt.want)
			}
		})
	}
}
