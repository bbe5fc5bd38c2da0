package query

import (
	"context"
	"fmt"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/mistakes"
)

// TestChange is one change of one test of the Mistake Book.
type TestChange struct {
	Seq     uint64 // the group.rewarded event that brought it
	Group   string
	Step    int
	Change  mistakes.Change
	Answers []int // those that failed it, of an increment, and passed it, of a decrement
}

// BookHistory calls visit for every change of the tests of a problem, in order.
// With call, only those of tests that make this call.
func BookHistory(ctx context.Context, log eventlog.Reader, problemID, call string, visit func(TestChange) error) error {
	book := mistakes.New()
	for r, err := range log.Read(ctx, eventlog.ReadOptions{Types: []events.Type{events.TypeGroupRewarded}}) {
		if err != nil {
			return err
		}
		e, err := r.Decode()
		if err != nil {
			return err
		}
		rewarded := e.Payload.(*events.GroupRewarded)
		if rewarded.ProblemID != problemID {
			continue
		}
		var executed *events.CodeExecuted
		for _, change := range book.Apply(rewarded) {
			if call != "" && change.Call != call {
				continue
			}
			if executed == nil {
				if executed, err = Executed(ctx, log, e); err != nil {
					return fmt.Errorf("verdicts of event %d: %w", r.Seq, err)
				}
			}
			err := visit(TestChange{r.Seq, e.Group, rewarded.Plan.Step, change, answersBehind(executed, &change)})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// answersBehind returns the answers whose verdicts made a change.
func answersBehind(g *events.CodeExecuted, c *mistakes.Change) []int {
	answers := []int{}
	for m := range g.Answers {
		a := &g.Answers[m]
		if a.Loads && a.Failure == "" && (c.Count < c.Before && passes(g, a, c) || c.Count > c.Before && fails(a, c)) {
			answers = append(answers, m)
		}
	}
	return answers
}

func passes(g *events.CodeExecuted, a *events.ExecutedAnswer, c *mistakes.Change) bool {
	for i, h := range g.Historical {
		if h.Call == c.Call && h.Expected == c.Expected && a.Historical[i] == events.VerdictPass {
			return true
		}
	}
	return false
}

func fails(a *events.ExecutedAnswer, c *mistakes.Change) bool {
	for n := range a.Suites {
		for i := range a.Suites[n].Tests {
			t := &a.Suites[n].Tests[i]
			if t.Status == events.StatusKept && t.Call == c.Call && t.Expected == c.Expected && t.Verdict.Failed() {
				return true
			}
		}
	}
	return false
}
