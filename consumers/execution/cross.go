package execution

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"codea1/consumers/execution/literal"
	"codea1/consumers/execution/sandbox"
	"codea1/events"
)

// cross runs each answer that loads on the tests of all suites of its group. It has
// a process of its own, so that the verdicts of the suites are those of a group
// without a cross. An answer that the sandbox fails on is lost: its Failure and its
// error in failures are set, and its suites are not part of the cross.
func (x *Executor) cross(ctx context.Context, problem *events.Problem, codes []string, truth *truthRun, out *events.CodeExecuted, failures []error) error {
	asked := newCalls()
	for _, t := range out.CrossTests() {
		asked.add(t.Call)
	}
	took := timed{sum: truth.load, most: truth.load}
	for _, call := range asked.list {
		o, ok := truth.outcomes[call]
		took.add(o.Took, ok)
	}
	outcomes := make([][]sandbox.Outcome, len(codes)) // by answer and call; nil: it does not load
	var running errgroup.Group
	running.SetLimit(x.config.Workers)
	for i := range codes {
		if answer := &out.Answers[i]; answer.Failure != "" || !answer.Loads || len(asked.list) == 0 {
			continue
		}
		running.Go(func() error {
			program := sandbox.Program{Code: codes[i], EntryPoint: problem.EntryPoint}
			report, err := x.pool.RunCalls(ctx, x.allow(took).job(sandbox.JobCalls, program, asked.list))
			var failed *sandbox.Error
			if errors.As(err, &failed) {
				out.Answers[i] = events.ExecutedAnswer{Failure: sandbox.Clip(err.Error())}
				failures[i] = err
				return nil
			}
			outcomes[i] = report.Outcomes
			return err
		})
	}
	if err := running.Wait(); err != nil {
		return err
	}
	tests := out.CrossTests() // without those of lost answers
	out.Cross = events.NewCross(len(tests), len(codes))
	for i, t := range tests {
		want, err := literal.Parse(t.Value)
		for m := range codes {
			if outcomes[m] == nil {
				continue
			}
			verdict := events.VerdictNotRun
			// A lost answer may have made room for tests that nobody asked.
			if at, ran := asked.index[t.Call]; ran && err == nil {
				verdict, _ = judge(outcomes[m][at], want)
			}
			out.Cross.Set(m, i, verdict)
		}
	}
	return nil
}
