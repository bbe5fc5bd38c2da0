package evaluation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codea1/events"
)

func TestGathered(t *testing.T) {
	plan := events.Plan{Purpose: events.PurposeEval}
	training := events.Plan{Purpose: events.PurposeTrain}
	sampled := func(p events.Plan, id, text string) *events.CodeSampled {
		return &events.CodeSampled{Posed: events.ProblemPosed{Plan: p, Problem: events.Problem{ID: id}}, Answers: []events.Completion{{Text: text}}}
	}
	event := func(group string, p events.Payload) *events.Event {
		return events.New("r", group, "test", time.Time{}, p)
	}
	var g Gathered
	if len(g.Groups()) != 0 || g.Ended() != 0 {
		t.Fatal("the zero value has groups")
	}
	for _, e := range []*events.Event{
		event("1", sampled(plan, "b", "```python\nx = 1\n```")),
		event("2", sampled(plan, "a", "y")),
		event("3", sampled(plan, "c", "z")),
		event("4", sampled(training, "d", "z")),
		event("1", &events.CodeExecuted{Plan: plan, ProblemID: "b"}),
		event("1", &events.EvalScored{Plan: plan}),
		event("4", &events.CodeExecuted{Plan: training, ProblemID: "d"}),
		event("2", &events.CodeExecuted{Plan: plan, ProblemID: "a"}),
		event("2", &events.GroupDropped{Purpose: events.PurposeEval}), // every answer is masked
		event("3", &events.GroupDropped{Purpose: events.PurposeEval}),
		event("5", &events.GroupDropped{Purpose: events.PurposeTrain}),
	} {
		g.Add(e)
	}
	var got []string
	for _, a := range g.Groups() {
		got = append(got, a.Problem.ID+": "+a.Codes[0]+" "+a.Executed.ProblemID)
	}
	if d := cmp.Diff([]string{"b: x = 1\n b"}, got); d != "" {
		t.Error(d)
	}
	if g.Ended() != 3 || len(g.Dropped) != 2 {
		t.Errorf("%d groups ended, %d dropped; want 3 and 2", g.Ended(), len(g.Dropped))
	}
}
