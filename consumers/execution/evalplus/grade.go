package evalplus

import (
	"context"

	"codea1/consumers/execution"
	"codea1/consumers/execution/grading"
	"codea1/events"
)

// Grade grades the samples of tasks, several at a time, and calls emit with the
// grades of each task that has samples, in the order of the tasks.
func Grade(ctx context.Context, x *execution.Executor, workers int, tasks []*Task, samples map[string][]string, emit func(*Task, []*grading.Grade) error) error {
	problems := make(map[string]*grading.Problem, len(tasks))
	byID := make(map[string]*Task, len(tasks))
	for _, t := range tasks {
		byID[t.ID] = t
		problems[t.ID] = &grading.Problem{
			ID: t.ID, EntryPoint: t.EntryPoint, Solution: t.Solution(), StopEarly: true,
			Make: func(ctx context.Context) (*execution.GoldenPlan, error) { return t.plan(ctx, x) },
		}
	}
	feed := func(each func(grading.Answer) error) error {
		for _, t := range tasks {
			for _, code := range samples[t.ID] {
				if err := each(grading.Answer{ID: t.ID, Code: code}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	var grades []*grading.Grade // of one task
	return grading.NewGrader(x, workers, problems).Run(ctx, feed, func(g *grading.Grade) error {
		grades = append(grades, g)
		if len(grades) < len(samples[g.ID]) {
			return nil
		}
		problems[g.ID].Forget()
		all := grades
		grades = nil
		return emit(byID[g.ID], all)
	})
}

// Passed reports whether an answer passes the base tests, and whether it also passes
// the plus tests.
func (t *Task) Passed(loads bool, verdicts []events.GoldenVerdict) (base, plus bool) {
	return Passed(loads, verdicts, len(t.base), t.Tests())
}

// Passed reports whether an answer passes the first of its tests, and whether it passes
// all of them.
func Passed(loads bool, verdicts []events.GoldenVerdict, base, tests int) (passedBase, passedAll bool) {
	first := len(verdicts)
	for i := range verdicts {
		if verdicts[i].Verdict != events.VerdictPass {
			first = i
			break
		}
	}
	loads = loads && len(verdicts) == tests
	return loads && first >= base, loads && first == len(verdicts)
}
