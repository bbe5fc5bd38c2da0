package query

import (
	"context"
	"errors"
	"fmt"

	"codea1/events"
	"codea1/replay/eventlog"
	"codea1/replay/mistakes"
)

// TestChange is one change of one test of the Mistake Book.
type TestChange struct {
	Seq     uint64 // the group.rewarded event of the change
	Group   string
	Step    int
	Change  mistakes.Change
	Answers []int // that failed the test (an increment) or passed it (a decrement)
}

// ErrNotPosed is returned for a problem that no group of the run has posed.
var ErrNotPosed = errors.New("the run has not posed this problem")

// CheckPosed returns ErrNotPosed for an unknown problem. It reads problems up to the
// first group of this one; problems that cannot be decoded are left out.
func CheckPosed(ctx context.Context, log eventlog.Reader, problemID string) error {
	for r, err := range log.Read(ctx, eventlog.ReadOptions{Types: []events.Type{events.TypeProblemPosed}}) {
		if err != nil {
			return err
		}
		e, err := r.Decode()
		if eventlog.IsUnreadable(err) {
			continue
		}
		if err != nil {
			return err
		}
		if e.Payload.(*events.ProblemPosed).Problem.ID == problemID {
			return nil
		}
	}
	return fmt.Errorf("problem %q: %w", problemID, ErrNotPosed)
}

// BookHistory calls visit for every change of the tests of a problem, in order.
// With call, only for tests with this call.
func BookHistory(ctx context.Context, log eventlog.Reader, problemID, call string, visit func(TestChange) error) error {
	book := mistakes.New()
	return eventlog.Decoded(ctx, log, []events.Type{events.TypeGroupRewarded}, func(r *eventlog.Record, e *events.Event) error {
		rewarded := e.Payload.(*events.GroupRewarded)
		if rewarded.ProblemID != problemID {
			return nil
		}
		var executed *events.CodeExecuted
		for _, change := range book.Apply(rewarded) {
			if call != "" && change.Call != call {
				continue
			}
			if executed == nil {
				var err error
				if executed, err = Executed(ctx, log, e); err != nil {
					return fmt.Errorf("verdicts of event %d: %w", r.Seq, err)
				}
			}
			if err := visit(TestChange{r.Seq, e.Group, rewarded.Plan.Step, change, answersBehind(executed, &change)}); err != nil {
				return err
			}
		}
		return nil
	})
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
